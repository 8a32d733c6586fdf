"""Commands are tested with small certificates: what these say is tested in tests/certificate."""

import pytest

from cida.runs import probe

MAX_ROWS = 200


@pytest.fixture(autouse=True)
def _certificates_of_few_rows(monkeypatch):
    certify = probe.certify_or_decline

    def certify_few(space, z, u, predicted, **names):
        return certify(space, z[:MAX_ROWS], u[:MAX_ROWS], predicted[:MAX_ROWS], **names)

    monkeypatch.setattr(probe, "certify_or_decline", certify_few)
