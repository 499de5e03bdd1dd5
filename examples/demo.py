"""Explain rejected rows of a random forest, with proof that no smaller change does it.

The forest tells malignant (0) from benign (1) tumours on scikit-learn's breast-cancer data. For rows that it calls
malignant: what is the smallest change of the 30 measurements after which it would say benign?
"""

from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

from ocf import Explainer


def main() -> None:
    data = load_breast_cancer(as_frame=True)
    train, test, y_train, _ = train_test_split(data.data, data.target, test_size=0.2, random_state=0)
    forest = RandomForestClassifier(n_estimators=100, max_depth=5, random_state=0).fit(train, y_train)
    rejected = test[forest.predict(test) == 0].head(3)

    explanations = Explainer(forest, data=train).explain(rejected, target=1, norm="l1", progress=True)

    for explanation in explanations:
        print(explanation, end="\n\n")
        assert explanation.status == "optimal"
        assert forest.predict(explanation.counterfactual)[0] == 1
    print("The forest itself was asked again about each of these points, and says benign.")


if __name__ == "__main__":
    main()
