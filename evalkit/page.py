"""The report page: an executed notebook as one self-contained HTML file, code hidden, for screen and paper."""

from __future__ import annotations

import re
from html import escape, unescape

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #c4c7cc; --soft: #f1f3f5; --edge: #0b5a8a; --quiet: #6a6f76; --shade: #0004; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --paper: #16181b; --line: #4a4d52; --soft: #24272b; --edge: #7cc4ee; --quiet: #9aa0a8; --shade: #fff5; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; font: 16px/1.5 system-ui, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; color: var(--ink); background: var(--paper);
  overflow-wrap: anywhere; }
main { margin: 0 auto; padding: 1.25rem 1.25rem 4rem; max-width: 62rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .5rem; }
h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.25rem 0 .5rem; }
p, ul { margin: .6rem 0; max-width: 46rem; } ul { padding-left: 1.4rem; }
.verdict { font-size: 1.35rem; line-height: 1.3; padding: .8rem 1rem; margin: .75rem 0; max-width: none; background: var(--soft);
  border-left: .6rem solid var(--quiet); }
.verdict.promote, .verdict.compared { border-left-color: var(--edge); }
.verdict.undecided, .verdict.unavailable { border-left-style: double; }
.demonstration { border: 1px dashed var(--quiet); padding: .3rem .7rem; max-width: none; }
.table, .picture { overflow-x: auto; margin: .75rem 0; }
.table { background: linear-gradient(to left, var(--paper) 1rem, transparent 3rem) right -1px top -1px / 3rem calc(100% + 3px) no-repeat local,
  linear-gradient(to left, var(--shade), transparent 1.1rem) right / 1.1rem 100% no-repeat scroll; }
.table:focus-visible, .picture:focus-visible { outline: 3px solid var(--edge); outline-offset: 2px; }
table { border-collapse: collapse; font-size: .95rem; }
th, td { padding: .35rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; max-width: 26rem; overflow-wrap: normal;
  font-variant-numeric: tabular-nums; }
td:last-child { max-width: 42rem; }
thead th { border-bottom: 2px solid var(--quiet); vertical-align: bottom; } thead th + th { max-width: 13rem; }
tbody th { font-weight: 600; } [style*="anywhere"] { min-width: 7rem; }
img { display: block; max-width: 100%; height: auto; background: #fff; border-radius: 4px; }
@media screen and (max-width: 44rem) {
  main { padding: 1rem .9rem 3rem; }
  table { font-size: .9rem; } th, td { padding: .3rem .4rem; max-width: 44vw; }
  [style*="nowrap"] { white-space: normal !important; }
  td:last-child { max-width: 56vw; }
  tbody th { position: sticky; left: 0; max-width: 36vw; background: var(--paper); border-right: 1px solid var(--line); }
}
@media screen and (max-width: 38rem) {
  .picture { background: #fff; border: 1px solid var(--line); border-radius: 4px; }
  .picture img { min-width: 35rem; }
  .picture::before { content: attr(data-claim) "\\A Scroll sideways to see it all."; white-space: pre-line; position: sticky; left: 0;
    display: block; box-sizing: border-box; width: calc(100vw - 2rem); padding: .5rem .6rem 0; color: #1b1b1b; font-weight: 600; }
}
@media print {
  @page { size: A4; margin: 15mm; }
  :root { color-scheme: light; --ink: #000; --paper: #fff; --line: #bbb; --soft: #f1f3f5; --edge: #0b5a8a; --quiet: #666; }
  body { font-size: 10pt; } main { max-width: none; padding: 0; }
  .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2 { margin-top: 1.4rem; } h2, p:has(+ .table) { break-after: avoid; } p, li, tr, img { break-inside: avoid; } p { orphans: 3; widows: 3; }
  .table, .picture { overflow: visible; background: none; } table { font-size: 9pt; } thead { display: table-header-group; }
  th, td, td:last-child { max-width: none; padding: .25rem .28rem; } th[style*="nowrap"] { white-space: normal !important; }
  [style*="anywhere"] { min-width: 5.5em; } .picture img { max-width: 14cm; }
}
"""
# Nothing is fetched and nothing runs, even where a name in a table were markup.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(executed: str, title: str) -> str:
    """The page of an executed notebook: no code, no network, a language, a title, and one main landmark."""
    import nbformat
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="basic", exclude_input=True, exclude_input_prompt=True, exclude_output_prompt=True, exclude_anchor_links=True
    )
    body, _ = exporter.from_notebook_node(nbformat.reads(executed, as_version=4))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{_reachable(body)}\n</main>\n</body>\n</html>\n"
    )


def _reachable(body: str) -> str:
    """What may scroll sideways takes the keyboard's focus, and is named after the heading above it.

    Names of strangers are escaped before they get here, so that a tag is always the kit's own.
    """
    heading = ""

    def put(found: re.Match[str]) -> str:
        nonlocal heading
        if found["heading"] is not None:
            heading = unescape(re.sub("<[^>]*>", "", found["heading"]))
            return found[0]
        kind = "table" if found["image"] is None else "picture"
        claim = re.search(' data-claim="[^"]*"', found[0])
        opened = f'<div class="{kind}" role="group" tabindex="0" aria-label="{escape(f"{kind}: {heading}")}"{claim[0] if claim else ""}>'
        return opened if found["image"] is None else f"{opened}{found['image']}</div>"

    return re.sub(r'<h[1-6][^>]*>(?P<heading>.*?)</h[1-6]>|<div class="table">|(?P<image><img [^>]*>)', put, body, flags=re.DOTALL)
