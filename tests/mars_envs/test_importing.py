"""Objects by name."""

from __future__ import annotations

import pytest

from mars_envs.importing import import_object, is_importable


def test_a_name_leads_to_its_object() -> None:
    from mars_envs.testing import StubJudge

    assert import_object("mars_envs.testing:StubJudge") is StubJudge
    assert import_object("mars_envs.testing:StubJudge.judge") is StubJudge.judge


@pytest.mark.parametrize("name", ["a.b", "a:", ":b", "a:b:c", "/tmp/x:y", "C:\\x", "a b:c"])
def test_other_forms_are_not_importable(name: str) -> None:
    assert not is_importable(name)
    with pytest.raises(ValueError, match="expected 'module:name'"):
        import_object(name)


def test_a_missing_object_is_named() -> None:
    with pytest.raises(ValueError, match="nothing named 'nope' in 'mars_envs'"):
        import_object("mars_envs:nope")
