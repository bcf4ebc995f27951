import pytest

from engine.provider.finish_reasons import MAX_REASON_CHARS, read_reason
from engine.provider.model import ProviderError


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("MAX_TOKENS", "length"),
        ("sensitive", "content_filter"),
        ("end_turn", "stop"),
        ("tool_use", "tool_calls"),
        ("tool_calls", "tool_calls"),
        ("Something_New", "Something_New"),
        ("New\0er\ud800", "Newer\ufffd"),
        ("x" * 1_000, "x" * MAX_REASON_CHARS),
    ],
)
def test_a_reason_has_openais_word_if_there_is_one(said: str, read: str) -> None:
    assert read_reason(said) == read


@pytest.mark.parametrize(
    "said", ["insufficient_system_resource", "network_error", "error", "abort", "cancelled"]
)
def test_a_reply_that_was_cut_off_is_a_fault(said: str) -> None:
    with pytest.raises(ProviderError) as caught:
        read_reason(said)
    assert (caught.value.code, caught.value.retryable) == ("provider_unavailable", True)
    assert said in caught.value.said
