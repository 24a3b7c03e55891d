"""Where Kumulus is published. Assumed until it is; a test keeps all other files to these names."""

REPOSITORY = "https://github.com/kumulus-io/kumulus"

NPM_PACKAGE = "@kumulus/kumulus"

NUGET_NAMESPACE = "Kumulus"

GO_MODULE = f"{REPOSITORY.removeprefix('https://')}/sdk/go/kumulus"


def page_address(page: str) -> str:
    """The address of a page of docs/, such as ``faults.md``."""
    return f"{REPOSITORY}/blob/main/docs/{page}"
