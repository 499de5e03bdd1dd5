r"""Local and regional counterfactual rules: minimal divergent explanations and maximal rules.

Source: Amoukou and Brunel, Local and Regional Counterfactual Rules: Summarized and Robust Recourses (2024), definitions
2.1 to 2.3. The paper searches subsets exhaustively and merges leaves greedily; these models find the optimum of the
definitions, over the estimates of `ocf.regional.forest`. With a region in place of the row they are the regional
versions.

Nomenclature
------------
=====================  ===============================================================================
``i, t, B``            feature, tree, number of trees
``held, free``         what holds outside S, and what S may take (`ocf.regional.query.ProbabilityQuery`)
``s[i]``               := 1 if feature i is in S
``alpha[i,j]``         := 1 if the box lies right of cut j of the ordered feature i
``beta[i,j]``          := 1 if the box lies left of cut j
``gamma[i,l]``         := 1 if level l of the unordered feature i is in the box
``only[i,M]``          := 1 if all levels of the box are in the set M
``v[t]``               := share of wanted rows in the cell of tree t
``w[r]``               := weight of training row r given what is held (constant)
``b[g]``               := 1 if the rows g, alike to all cuts, lie in the box
=====================  ===============================================================================

Model of the minimal divergent explanation (definition 2.2)
-----------------------------------------------------------
.. math::

    \min\ & \textstyle\sum_i s_i - \frac1B \sum_t v_t \\
    \text{s.t. } & \textstyle\frac1B \sum_t v_t \ge \pi & & \quad (1) \\
    & \textstyle\sum_i s_i \ge 1, \quad s \in \{0, 1\} & & \quad (2)

As the probability lies between pi > 0 and 1, the objective is lexicographic: fewest features first, then the largest
CDP.

Model of the maximal rule (definition 2.3)
------------------------------------------
.. math::

    \max\ & \textstyle\sum_g w_g b_g \\
    \text{s.t. } & \textstyle\frac1B \sum_t v_t \ge \pi_C & & \quad (3) \\
    & \alpha_{ij} \ge \alpha_{i,j+1}, \quad \beta_{ij} \le \beta_{i,j+1}, \quad \alpha_{ij} + \beta_{ij} \le 1 & &
      \quad (4) \\
    & \textstyle\sum_l \gamma_{il} \ge 1 & & \quad (5) \\
    & only_{iM} \le 1 - \gamma_{il} \ (l \notin M), \quad only_{iM} \ge 1 - \textstyle\sum_{l \notin M} \gamma_{il} & &
      \quad (6) \\
    & b_g \le 1 - \alpha_{ij} \text{ right of } g, \quad b_g \le 1 - \beta_{ij} \text{ left of } g, \quad
      b_g \le \gamma_{il} & & \quad (7) \\
    & \text{for each earlier rule, some } i \in S \text{ on which the box lies apart from it} & & \quad (8) \\
    & \alpha_{ij} = 0, \ \beta_{ij} = 0 \text{ where all that lies beyond captures less than a known box} & &
      \quad (9) \\
    & \alpha, \beta, \gamma \in \{0, 1\}

Only cuts of splits that can be met are needed: a box can be widened between two of them, which changes no cell and
loses no row.

The shares
----------
A node is met if its path is: a split on a feature outside S lets pass what the held region allows, one on a feature in
S what the free region, or the box, allows. So the share of a tree is a function of the choices at the splits that are
met, and a descent of the tree makes a decision diagram of it (`blocks.cell_diagrams`); v is the value at the end of the
path through it (`blocks.diagrams`), which is the convex hull of each tree's share by itself. With a known box, whatever
captures less than it is left out of the diagrams, as in (9). Diagrams of sets never have more than ``2**K`` nodes.
Those of boxes grow with the number of cuts on the features of S: a tree whose descent has more states than
`blocks.tree_values.MOST_STATES` has its ratio linearised instead (`blocks.shares`), with literals of the same choices,
which is exact too but weak. Beyond `blocks.tree_values.MOST_CONDITIONS` rows of the matrix, trees are left out of (3):
an upper bound stands for their share (`ocf.rules.family_kernels`, over all boxes that capture more than the known one),
and boxes that are no rules are cut off as they come up, each with as many others as these bounds tell of:

.. math::

    \textstyle\sum_{j} (\text{an end of the box lies beyond } j) \ge 1 \quad (10)

over the ends, and the levels, of a family of boxes of which none reaches the level (`ocf.rules.solving`).
"""

from __future__ import annotations
