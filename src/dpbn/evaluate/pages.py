"""A report as a list of blocks, written as Markdown and as one HTML page: nothing is said in only one of them."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dpbn.files import write_atomically


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    text: str  # may use `code`, **bold** and *emphasis*


@dataclass(frozen=True)
class Points:
    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Figure:
    path: Path  # a PNG; the SVG stands beside it
    caption: str


Block = Heading | Text | Points | Table | Figure


def write_pages(blocks: Sequence[Block], folder: Path, name: str) -> tuple[Path, Path]:
    """`name`.md, with links to the figures, and `name`.html, complete in itself."""
    markdown = "\n\n".join(_markdown(block, folder) for block in blocks) + "\n"
    title = next((block.text for block in blocks if isinstance(block, Heading)), name)
    page = _PAGE.format(title=html.escape(title), body="\n".join(_html(block) for block in blocks))
    return write_atomically(folder / f"{name}.md", markdown), write_atomically(folder / f"{name}.html", page)


def _markdown(block: Block, folder: Path) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {text}"
        case Text(text):
            return text
        case Points(items):
            return "\n".join(f"- {item}" for item in items)
        case Table(columns, rows):
            lines = [_line(columns), _line("---" for _ in columns), *(_line(row) for row in rows)]
            return "\n".join(lines)
        case Figure(path, caption):
            return f"![{caption}]({path.with_suffix('.svg').relative_to(folder).as_posix()})"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _html(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"<h{level}>{_inline(text)}</h{level}>"
        case Text(text):
            return f"<p>{_inline(text)}</p>"
        case Points(items):
            return "<ul>" + "".join(f"<li>{_inline(item)}</li>" for item in items) + "</ul>"
        case Table(columns, rows):
            head = "".join(f'<th scope="col">{_inline(column)}</th>' for column in columns)
            body = "".join("<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>" for row in rows)
            return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        case Figure(path, caption):
            data = base64.b64encode(path.with_suffix(".svg").read_bytes()).decode()
            alt = html.escape(caption, quote=True)
            return (
                f'<figure><img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
                f"<figcaption>{_inline(caption)}</figcaption></figure>"
            )


def _inline(text: str) -> str:
    escaped = html.escape(text)
    escaped = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", escaped)
    escaped = re.sub(r"(?<![\w*])\*(?! )([^*`]+?)\*(?![\w*])", r"<em>\1</em>", escaped)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", escaped)


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; color: #1b1b1b; }}
h1, h2, h3 {{ line-height: 1.2; }} h2 {{ margin-top: 2.5rem; }}
.wide {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-size: .9rem; }}
th, td {{ padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: left; font-variant-numeric: tabular-nums; }}
th {{ border-bottom: 2px solid #888; }} img {{ max-width: 100%; height: auto; }}
figure {{ margin: 1.5rem 0; }} figcaption {{ color: #555; font-size: .9rem; }} code {{ background: #f2f2f2; }}
</style></head><body>
{body}
</body></html>
"""
