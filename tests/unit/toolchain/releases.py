"""Release files of the sample's tools, on a mirror."""

from kumulus.toolchain import releases
from tests.support.mirror import Answer, Mirror, program, sha256, tar
from tests.unit.toolchain.sample import Sample

ALPHA = program("1.2.3", padding=200_000)
BETA = program("2.0.0", padding=100_000)
HERE = releases.platform()


def offer(sample: Sample, mirror: Mirror, name: str, body: bytes, tools: dict[str, str], version: str) -> Answer:
    """Name a release file in the sample's pins, and put it on the mirror."""
    members = ", ".join(f'{tool} = "{member}"' for tool, member in tools.items())
    sample.pins.write_text(
        f'{sample.pins.read_text()}\n[[download]]\ntools = {{{members}}}\nversion = "{version}"\nmegabytes = 1\n'
        f'others = "alpha/alpha-*"\nsource = "this test"\n'
        f'[download.{HERE}]\nurl = "https://files.example/release/{name}"\nsha256 = "{sha256(body)}"\n'
    )
    answer = Answer(body)
    mirror.files[f"/mine/files.example/release/{name}"] = answer
    return answer


def both(sample: Sample, mirror: Mirror) -> tuple[Answer, Answer]:
    """Offer alpha as an archive and beta as the program itself."""
    packed = tar({"alpha-1.2.3/README": b"words", f"alpha-1.2.3/{HERE}/alpha": ALPHA})
    alpha = offer(sample, mirror, "alpha.tar.gz", packed, {"alpha": "alpha-1.2.3/{platform}/alpha"}, "1.2.3")
    return alpha, offer(sample, mirror, "beta", BETA, {"beta": ""}, "2.0.0")
