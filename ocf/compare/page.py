"""Style and script of a report's page: no network, light and dark, telephone and desk."""

STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--paper:#fff;--faint:#5c6066;--rule:#d9dce0;--panel:#f6f7f8;--bad:#b3261e;
--m0:#4477aa;--m1:#cc3311;--m2:#117733;--m3:#aa6600;--m4:#882288;--m5:#0090a8;--m6:#d0427e;--m7:#667700;--m8:#444f9e;--m9:#777}
@media (prefers-color-scheme:dark){:root{--ink:#e6e6e6;--paper:#16181c;--faint:#a3a8af;--rule:#3a3f47;--panel:#1f2228;
--bad:#ff8a80;--m0:#77aadd;--m1:#ff8866;--m2:#55bb77;--m3:#ddaa33;--m4:#cc88dd;--m5:#44c8dd;--m6:#ff88b8;--m7:#b8c844;
--m8:#99a4f0;--m9:#aaa}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.2rem;max-width:76rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:.2rem 0 .2rem}
h2{font-size:1.15rem;line-height:1.3;margin:1.8rem 0 .3rem}
h3{font-size:1rem;line-height:1.3;margin:0 0 .3rem}
p{margin:.3rem 0;max-width:52rem}
a{color:inherit}
code{font-size:.9em}
.note,.caption{color:var(--faint);font-size:.87rem;line-height:1.4}
.bad{border:2px solid var(--bad);border-radius:8px;padding:.6rem 1rem;margin:1rem 0}
.bad h2{margin:.1rem 0 .3rem;color:var(--bad)}
.bad ul{margin:.3rem 0;padding-left:1.2rem}
.wide{overflow-x:auto;margin:.5rem 0;border:1px solid var(--rule);border-radius:6px}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.87rem;width:100%;overflow-wrap:normal}
th,td{padding:.3rem .7rem;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}
tr:last-child td{border-bottom:0}
th{background:var(--panel);font-weight:600;vertical-align:bottom}
th:first-child,td:first-child{text-align:left}
td.t,th.t{text-align:left}
.wide th:first-child,.wide td:first-child{position:sticky;left:0;background:var(--paper)}
.wide th:first-child{background:var(--panel)}
th button{all:unset;cursor:pointer;font:inherit;white-space:nowrap}
th button:focus-visible{outline:2px solid var(--m0);outline-offset:2px}
th[aria-sort=ascending] button::after{content:" \\2191"}
th[aria-sort=descending] button::after{content:" \\2193"}
td small{color:var(--faint)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1rem;margin:.6rem 0}
figure{margin:0;border:1px solid var(--rule);border-radius:8px;padding:.7rem .9rem;min-width:0}
figure>svg{width:100%;height:auto;display:block}
.legend{display:flex;flex-wrap:wrap;gap:.1rem .9rem;font-size:.82rem;margin:.3rem 0}
.legend span{display:inline-flex;align-items:center;gap:.3rem}
.key{width:26px;height:10px;flex:none}
svg text{font:13px system-ui,sans-serif;fill:currentColor}
.grid{stroke:var(--rule);stroke-width:1;fill:none}
.axis{stroke:var(--faint);stroke-width:1;fill:none}
.edge{stroke:var(--faint);stroke-width:1;fill:none;stroke-dasharray:2 3}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.band{fill:var(--c);opacity:.13}
.dot{fill:var(--c);fill-opacity:.75}
.ring{fill:none;stroke:var(--c);stroke-width:1.5}
.m0{--c:var(--m0)}
.m1{--c:var(--m1);stroke-dasharray:9 3}
.m2{--c:var(--m2);stroke-dasharray:3 3}
.m3{--c:var(--m3);stroke-dasharray:9 3 2 3}
.m4{--c:var(--m4);stroke-dasharray:14 3}
.m5{--c:var(--m5);stroke-dasharray:1 4;stroke-linecap:round}
.m6{--c:var(--m6);stroke-dasharray:5 2 1 2}
.m7{--c:var(--m7);stroke-dasharray:9 6}
.m8{--c:var(--m8);stroke-dasharray:3 6}
.m9{--c:var(--m9);stroke-dasharray:12 3 2 3 2 3}
.dot,.ring,.band,.bound{stroke-dasharray:none}
.bound{stroke-dasharray:1.5 2.5;stroke-width:1.5}
dl{display:grid;grid-template-columns:auto minmax(0,1fr);gap:.1rem 1rem;margin:.4rem 0;font-size:.87rem}
dt{color:var(--faint)}dd{margin:0}
summary{cursor:pointer}
@media (max-width:480px){body{padding:.8rem}figure{padding:.5rem}th,td{padding:.3rem .5rem}
td.t,th.t,th:first-child button{white-space:normal;min-width:5.5rem}}
"""

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  table.querySelectorAll("th button").forEach((button, column) => button.addEventListener("click", () => {
    const head = button.parentElement, up = head.getAttribute("aria-sort") !== "ascending";
    table.querySelectorAll("th").forEach(th => th.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const value = row => { const c = row.cells[column], v = c.dataset.v; return v === undefined ? c.textContent : +v; };
    const order = (a, b) => {
      const x = value(a), y = value(b);
      if (typeof x === "string" || typeof y === "string") return (up ? 1 : -1) * ("" + x).localeCompare("" + y);
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
      return x === y ? 0 : (x < y) === up ? -1 : 1;
    };
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(order));
  }));
}
"""
