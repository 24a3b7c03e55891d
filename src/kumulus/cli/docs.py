"""Print a page of the documentation, with its address; without a page, list them.

    kumulus docs faults
    kumulus docs reference/stack-file
    kumulus docs faults --path       # where the file is, for an editor or a pager

Texts of commands name pages as docs/PAGE.md.
"""

import argparse
import sysconfig
from pathlib import Path

from kumulus.cli.errors import UserError
from kumulus.cli.registry import complete_by
from kumulus.host import installation
from kumulus.host.version import page_address
from kumulus.model.names import nearest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    page = parser.add_argument("page", nargs="?", help="such as faults, or docs/faults.md")
    complete_by(page, lambda **_: sorted(_pages()))
    parser.add_argument("--path", action="store_true", help="print where its file is instead")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    pages = _pages()
    if args.page is None:
        width = max(map(len, pages), default=0)
        for name, file in sorted(pages.items()):
            title = file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
            print(f"{name:<{width}}  {title}")
        return 0
    name = args.page.partition("#")[0].removeprefix("./").removeprefix("docs/").removesuffix(".md")
    if name not in pages:
        near = nearest(name, pages)
        hint = f"did you mean {' or '.join(near)}?" if near else f"`{installation.command()} docs` lists them"
        raise UserError(f"there is no page {args.page}; {hint}")
    if args.path:
        print(pages[name])
        return 0
    print(f"{page_address(f'{name}.md')}\n\n{pages[name].read_text(encoding='utf-8')}", end="")
    return 0


def _pages() -> dict[str, Path]:
    """The pages, by name: those of the checkout, or those that the package has installed under share/doc.

    Some installations leave these out.
    """
    checkout = installation.checkout()
    folder = checkout / "docs" if checkout else Path(sysconfig.get_path("data")) / "share" / "doc" / "kumulus"
    found = {
        file.relative_to(folder).with_suffix("").as_posix(): file
        for pattern in ("*.md", "reference/*.md")
        for file in folder.glob(pattern)
        # The others are of Pulumi's registry, and begin with front matter.
        if file.read_text(encoding="utf-8").startswith("# ")
    }
    if not found:
        raise UserError(f"the pages are not in {folder}; they are at {page_address('README.md')}")
    return found
