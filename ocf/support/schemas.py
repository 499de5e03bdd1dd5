"""What the files that ocf writes and reads must hold: one `msgspec.Struct` for each kind of object in them.

`ocf.support.documents.fit` checks plain values against one and names the place of the first that does not fit. A
schema says
the types and ranges of values; what values mean together is checked where they are used. Keys that a schema does not
have are left to whoever makes the object.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from ocf.support.documents import AtLeastOne, Count, Label

#: A number, or the word for an infinite one, which JSON lacks.
Number = float | Literal["inf", "-inf"]

#: The same, or nothing.
MaybeNumber = float | Literal["inf", "-inf"] | None

Amount = Annotated[float, Meta(ge=0)]

#: A part of a whole that is not empty.
Share = Annotated[float, Meta(gt=0, le=1)]

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]

Split = Annotated[int, Meta(ge=0, le=3)]

Size = Annotated[int, Meta(ge=0, le=2**40)]

# -- constraints -----------------------------------------------------------------------------------------------

#: What an implication says of a feature.
Said = Label | list[Label] | dict[str, Label]


class LinearSchema(Struct, tag_field="kind", tag="linear"):
    """A `Linear`, as it is saved or as a problem file says it."""

    terms: dict[str, float | dict[str, float]] | list[tuple[str, Label, float]]
    sense: str
    bound: float
    relative: bool = False
    name: str = ""


class ImplicationSchema(Struct, tag_field="kind", tag="implication"):
    """An `Implication`."""

    then: dict[str, Said] | list[tuple[str, Said]]
    when: dict[str, Said] | list[tuple[str, Said]] = {}
    name: str = ""


class BudgetSchema(Struct, tag_field="kind", tag="budget"):
    """A `Budget`; its curves are checked by `Curve.parse`."""

    limit: float
    costs: dict[str, Any] | list[tuple[str, Any]]
    name: str = ""


class MaxChangesSchema(Struct, tag_field="kind", tag="max_changes"):
    """A `MaxChanges`."""

    most: int
    among: list[str] = []
    name: str = ""


class KeepsSchema(Struct, tag_field="kind", tag="keeps"):
    """A `Keeps`."""

    features: list[str]
    name: str


class ApartSchema(Struct, tag_field="kind", tag="apart"):
    """An `Apart`."""

    point: list[tuple[str, float | None]]
    distance: float
    name: str


ConstraintSchema = LinearSchema | ImplicationSchema | BudgetSchema | MaxChangesSchema | KeepsSchema | ApartSchema

# -- features and costs ----------------------------------------------------------------------------------------


class SpecialSchema(Struct, forbid_unknown_fields=True):
    """A `Special`."""

    codes: list[float] = []
    missing: bool = False
    supplying: Amount | None = None
    becoming: Amount | None = None


class FeatureSchema(Struct, forbid_unknown_fields=True):
    """A `Feature`; its own cost is checked by `Curve.parse`."""

    name: str
    kind: Literal["numeric", "integer", "binary", "ordinal", "categorical"]
    columns: list[str]
    base: bool
    levels: list[Label]
    lower: Number
    upper: Number
    step: float | None
    scale: float
    action: Literal["free", "fixed", "increasing", "decreasing"]
    weight_down: float
    weight_up: float
    permitted: list[Label] | None
    dtype: str = "float64"
    cost: Any = None
    special: SpecialSchema | None = None
    none: bool = False


class SpaceSchema(Struct):
    """A `FeatureSpace`."""

    columns: list[str]
    features: list[FeatureSchema]


class ReadingSchema(Struct):
    """A `Reading`: where the description of the features comes from."""

    rows: Count
    groups: list[str] = []
    suspects: dict[str, list[float]] = {}
    told: list[str] = []
    whole: list[str] = []
    asked: bool = False


class CostSchema(Struct, forbid_unknown_fields=True):
    """A `Cost`."""

    l0: Amount = 0.0
    l1: Amount = 0.0
    l2: Amount = 0.0
    squares: list[tuple[str, float]] = []
    forms: list[list[tuple[str, float]]] = []
    absolutes: list[list[tuple[str, float]]] = []


# -- problems --------------------------------------------------------------------------------------------------


Dtype = TypeVar("Dtype")

Element = TypeVar("Element")


class ArraySchema(Struct, Generic[Dtype, Element], forbid_unknown_fields=True):
    """An array."""

    dtype: Dtype
    shape: list[Size]
    data: list[Element]


Splits = ArraySchema[Literal["uint8"], Split]

Int32s = ArraySchema[Literal["int32"], Int32]

Int64s = ArraySchema[Literal["int64"], Int64]

Floats = ArraySchema[Literal["float64"], float]

Bools = ArraySchema[Literal["bool"], bool]


class MapSchema(Struct, forbid_unknown_fields=True):
    """A `Map` of a total."""

    kind: Literal["affine", "logistic", "exp", "log", "odds", "table", "step"]
    x: list[float]
    y: list[float]
    narrow: bool = False


class TermSchema(Struct, forbid_unknown_fields=True):
    """A `Term` of a total."""

    output: Annotated[int, Meta(ge=0)]
    maps: list[MapSchema]
    weight: float


class TotalSchema(Struct, forbid_unknown_fields=True):
    """A `Total`."""

    terms: list[TermSchema]
    base: float
    divisor: Annotated[float, Meta(gt=0)]
    replayed: bool


class DecisionSchema(Struct, forbid_unknown_fields=True):
    """A `Decision`; the first files had no totals and no final trees."""

    kind: Literal["argmax", "threshold", "value"]
    classes: list[Label]
    threshold: float
    tie_is_positive: bool
    link: Literal["identity", "logistic", "softmax", "exp", "mean", "normalized", "signed_square"]
    slack: Amount
    totals: list[TotalSchema] = []
    margin: TotalSchema | None = None
    final: FinalSchema | None = None


class FinalSchema(Struct, forbid_unknown_fields=True):
    """`FinalTrees`."""

    inputs: list[TermSchema]
    trees: EnsembleSchema


class EnsembleSchema(Struct, forbid_unknown_fields=True):
    """An `Ensemble`; the first files had no codes and slack of oblique splits, and no lines."""

    feature_names: list[str]
    tree_offsets: Int64s
    kind: Splits
    feature: Int32s
    threshold: Floats
    left: Int32s
    right: Int32s
    leaf: Int32s
    leaf_values: Floats
    tree_weights: Floats
    base_score: Floats
    decision: DecisionSchema
    precision: Literal["float32", "float64"]
    missing_left: Bools | None
    set_index: Int32s
    sets: Bools
    oblique_index: Int32s
    oblique_indptr: Int64s
    oblique_indices: Int32s
    oblique_data: Floats
    oblique_codes: Int32s | None = None
    oblique_slack: Floats | None = None
    lines: Int64s | None = None


class ClassTargetSchema(Struct, tag_field="kind", tag="class"):
    """A `ClassTarget`."""

    index: Count


class ClassSetTargetSchema(Struct, tag_field="kind", tag="classes"):
    """A `ClassSetTarget`."""

    indices: Annotated[list[Count], Meta(min_length=1)]


class ProbabilityTargetSchema(Struct, tag_field="kind", tag="probability"):
    """A `ProbabilityTarget`."""

    indices: Annotated[list[Count], Meta(min_length=1)]
    probability: Share


class IntervalTargetSchema(Struct, tag_field="kind", tag="interval"):
    """An `IntervalTarget`."""

    lower: float | None
    upper: float | None


TargetSchema = ClassTargetSchema | ClassSetTargetSchema | ProbabilityTargetSchema | IntervalTargetSchema


class IsolationDepthSchema(Struct):
    """An `IsolationDepth`."""

    forest: EnsembleSchema
    least: float | None
    error_bound: Amount
    weight: Amount


class CompletionsSchema(Struct):
    """`Completions` of a problem."""

    trees: list[list[Count]]
    least: Count
    isolation: list[list[Count]] = []


class ProblemSchema(Struct):
    """A `Problem`."""

    ensemble: EnsembleSchema
    space: SpaceSchema
    origin: list[float | None]
    target: TargetSchema
    cost: CostSchema
    plausibility: IsolationDepthSchema | None = None
    constraints: list[ConstraintSchema] = []
    completions: CompletionsSchema | None = None
    margins: list[tuple[str, Amount]] = []
    dead: list[Count] = []


# -- explanations ----------------------------------------------------------------------------------------------


class CategoriesSchema(Struct):
    """Dtype of a column of categories, and what their texts stand for where they are no words."""

    categories: list[Label]
    ordered: bool
    kind: str = ""


class TableSchema(Struct):
    """A table of one row."""

    values: dict[str, Label]
    dtypes: dict[str, str | CategoriesSchema]


class DepthSchema(Struct):
    """Plausibility of a counterfactual."""

    depth: float
    least: float | None
    weight: Amount
    deepest: float
    score: float | UnsetType = UNSET
    trees: Count | UnsetType = UNSET
    library: str | UnsetType = UNSET
    rows: Count | UnsetType = UNSET
    by: Literal["prediction", "label"] | UnsetType = UNSET


class EndsSchema(Struct):
    """A range of numbers, both ends included."""

    lowest: MaybeNumber
    highest: MaybeNumber


class BoxSchema(Struct):
    """The largest box around an answer."""

    ranges: dict[str, EndsSchema | list[Label] | None]
    free: list[str]
    width: float
    bound: MaybeNumber
    proven: bool


class ImputationsSchema(Struct):
    """Completions of a row's missing values."""

    values: dict[str, list[Label]]
    share: Share
    least: AtLeastOne
    met: Count | None = None


class ChangeSchema(Struct, rename={"old": "from", "new": "to"}):
    """What of a change is held against the row and the counterfactual."""

    feature: str
    old: Label
    new: Label
    change: MaybeNumber | UnsetType = UNSET
    cost: MaybeNumber | UnsetType = UNSET


class ClaimsSchema(Struct):
    """What of an explanation is checked by `ocf.verify.files`."""

    row: Label | list[Label]
    status: str
    predicted: Label
    target: Label | list[Label]
    decided: Label
    cost: MaybeNumber
    bound: MaybeNumber
    original: TableSchema
    counterfactual: TableSchema | None
    norm: CostSchema | None
    features: SpaceSchema | None
    probability: Share | None = None
    ties: list[TableSchema] = []
    plausibility: DepthSchema | None = None
    constraints: list[ConstraintSchema] = []
    imputations: ImputationsSchema | None = None
    margins: dict[str, Amount] = {}
    probabilities: Annotated[list[list[float]], Meta(min_length=1, max_length=2)] | None = None
    partway: list[list[float]] | None = None
    changes: list[ChangeSchema] | None = None
    gap: MaybeNumber | UnsetType = UNSET
    verified: bool | UnsetType = UNSET
    checks: list[str] | UnsetType = UNSET
    rank: AtLeastOne = 1
    ties_complete: bool | None = None
    conflict: list[str] = []
    ranges: list[dict[str, EndsSchema | list[Label]]] = []
    box: BoxSchema | None = None


class ExplanationSchema(ClaimsSchema, kw_only=True):
    """An `Explanation`."""

    gap: MaybeNumber
    times: dict[str, float]
    nodes: Count
    refused: Count
    proved_by: str
    method: dict[str, Any]
    sizes: dict[str, int]
    history: list[tuple[Number, Number, Number]]
    verified: bool
    checks: list[str]
    message: str
    classes: list[Label]


# -- thresholds and checkpoints --------------------------------------------------------------------------------


class ThresholdSchema(Struct):
    """A threshold of a thresholds file."""

    feature: str
    value: float
    multiplicity: Annotated[int, Meta(ge=0, le=2**62)]
    digits: Annotated[int, Meta(ge=1, le=17)] = 6


class ThresholdsSchema(Struct):
    """A thresholds file."""

    space: SpaceSchema
    thresholds: list[ThresholdSchema]


class HeadSchema(Struct):
    """First line of a checkpoint."""

    schema: str
    fingerprint: dict[str, str]


class RowSchema(Struct):
    """A finished row of a checkpoint."""

    row: Count


class CompressedRowSchema(RowSchema):
    """A finished row of `ocf compress`."""

    status: Literal["optimal", "feasible", "infeasible", "unknown", "error"]
    cost: float | None
    changes: list[tuple[Count, float]]
