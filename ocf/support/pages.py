"""What all HTML pages share: styles and bars."""

from __future__ import annotations

# -- HTML ------------------------------------------------------------------------------------------------------

# Colours inside are the surrounding page's, so that a fragment also fits a notebook with a theme of its own.
FRAGMENT_STYLE = """
.ocf{font:15px/1.5 system-ui,sans-serif;max-width:46rem;overflow-wrap:anywhere}
.ocf .whole{overflow-wrap:break-word}
.ocf article{border:1px solid rgba(128,128,128,.35);border-radius:8px;padding:.8rem 1rem;margin:0 0 1rem}
.ocf h2{font-size:1.05rem;font-weight:600;margin:0 0 .4rem;line-height:1.35}
.ocf p{margin:.2rem 0}
.ocf .note{opacity:.75}
.ocf .status{display:inline-block;font-size:.8rem;border:1px solid currentColor;border-radius:1rem;
padding:0 .6rem;margin:0 .4rem .3rem 0}
.ocf .wrong{border-left:4px solid #d33;padding-left:.6rem;font-weight:600}
.ocf table{border-collapse:collapse;width:100%;margin:.5rem 0;font-variant-numeric:tabular-nums;background:none}
.ocf th,.ocf td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;color:inherit;
border:0;border-bottom:1px solid rgba(128,128,128,.25);background:none;white-space:normal}
.ocf th{font-weight:600;font-size:.85rem;opacity:.75}
.ocf th.n,.ocf td.n{text-align:right;padding-right:0;white-space:nowrap}
.ocf .bar{height:4px;border-radius:2px;background:#4477aa;margin-top:.2rem}
.ocf summary{cursor:pointer;opacity:.75;font-size:.9rem}
.ocf details td{font-size:.85rem}
@media (max-width:480px){
.ocf .changes tr{display:grid;grid-template-columns:minmax(0,auto) minmax(0,1fr) auto;
padding:.3rem 0;border-bottom:1px solid rgba(128,128,128,.25)}
.ocf .changes tr:first-child{display:none}
.ocf .changes td{border:0;padding:0 .4rem 0 0}
.ocf .changes td:nth-child(1){grid-area:1/1/2/3;font-weight:600}
.ocf .changes td:nth-child(2){grid-area:2/1}
.ocf .changes td:nth-child(3){grid-area:2/2/3/4}
.ocf .changes td:nth-child(3)::before{content:"→ "}
.ocf .changes td:nth-child(4){grid-area:1/3}
.ocf .changes td:nth-child(4)::before{content:"cost ";opacity:.75}
}
"""

PAGE_STYLE = """
:root{color-scheme:light dark}
body{margin:0 auto;padding:1.2rem;max-width:46rem;background:#fff;color:#1a1a1a}
h1{font:600 1.4rem/1.3 system-ui,sans-serif;margin:.2rem 0 .3rem}
@media (prefers-color-scheme:dark){body{background:#16181c;color:#e6e6e6}.ocf .bar{background:#77aadd}}
"""


def bar_style(share: float) -> str:
    """A bar whose length is a share of the whole."""
    return f'<div class="bar" style="width:{100 * min(max(share, 0.0), 1.0):.1f}%"></div>'
