"""Write the pictures and the sample page that the README shows: ``make docs``."""

from pathlib import Path
from tempfile import TemporaryDirectory

from evalkit import draw, read_campaign, read_reference, read_tallies, report

HERE = Path(__file__).parent


def pictures() -> dict[str, draw.Picture]:
    """The README's two pictures, by file name."""
    before, after = read_tallies().values()
    return {"inversion.svg": draw.inversion(read_campaign()), "mix.svg": draw.mix_lines(before, after, read_reference())}


if __name__ == "__main__":
    for name, picture in pictures().items():
        (HERE / name).write_text(picture.svg, encoding="utf-8")
        print(f"{name}: {picture.alt}")
    with TemporaryDirectory() as folder:
        report.run("release", [], Path(folder))
        (HERE / "sample_report.html").write_bytes(Path(folder, "report.html").read_bytes())
