"""What every doctest may use: the published campaign, the two published periods, the published reference."""

from typing import Any

import pytest

from evalkit import read_campaign, read_reference, read_tallies


@pytest.fixture(autouse=True, scope="session")
def _published(doctest_namespace: dict[str, Any]) -> None:
    campaign, tallies = read_campaign(), read_tallies()
    doctest_namespace["fixture"] = {name: campaign.of(name) for name in campaign.candidates}
    doctest_namespace["baseline"], doctest_namespace["candidate"] = tallies["baseline"], tallies["candidate"]
    doctest_namespace["reference"] = read_reference()
