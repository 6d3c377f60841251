"""The report page: an executed notebook as one self-contained HTML file, code hidden, for screen and paper."""

from __future__ import annotations

from html import escape

__all__ = ["page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --line: #c8c8c8; --soft: #f3f4f6; --edge: #0b5a8a; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --paper: #16181b; --line: #4a4d52; --soft: #24272b; --edge: #7cc4ee; } }
body { margin: 0 auto; padding: 1rem 1.25rem 3rem; max-width: 62rem; font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  color: var(--ink); background: var(--paper); overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: 0 0 .5rem; } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; } a { color: var(--edge); }
.table { overflow-x: auto; } table { border-collapse: collapse; font-size: .95rem; }
th, td { overflow-wrap: break-word; padding: .3rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; font-variant-numeric: tabular-nums; }
thead th { border-bottom: 2px solid var(--line); } tbody th { font-weight: 600; }
.verdict { font-size: 1.3rem; padding: .7rem 1rem; border-left: .5rem solid var(--edge); background: var(--soft); margin: .5rem 0; }
.demonstration { font-style: italic; } img { max-width: 100%; height: auto; background: #fff; } pre { overflow-x: auto; }
@media print { @page { size: A4; margin: 15mm; } body { max-width: none; padding: 0; font-size: 10pt; } h2 { break-after: avoid; }
  table, img { break-inside: avoid; } .table { overflow: visible; } }
"""


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
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )
