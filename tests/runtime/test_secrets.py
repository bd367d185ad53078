"""No secret of an address is left in a text, whatever signs it is made of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fcer.config.resolve import resolve, to_yaml
from fcer.runtime.secrets import masked

PASSWORDS = st.text(min_size=1, max_size=20)


@given(PASSWORDS, st.sampled_from(["postgresql", "mysql+pymysql", "PostgreSQL+psycopg2", "redis"]))
def test_a_databases_password_is_hidden_whatever_it_is(password: str, scheme: str):
    assert masked(f"{scheme}://fcer:{password}@db:5432/studies") == f"{scheme}://fcer:***@db:5432/studies"


@given(st.text("abcXYZ019:@._~%-", min_size=1), st.sampled_from(["see {}", "{} does not answer", "({})"]))
def test_of_a_web_address_within_a_sentence_too(password: str, sentence: str):
    hidden = "http://fcer:***@host:5000/path"
    assert masked(sentence.format(f"http://fcer:{password}@host:5000/path")) == sentence.format(hidden)


@given(
    st.sampled_from(["password", "PASSWORD", "sslpassword", "pass%77ord", "api_key", "access_token", "sig"]), PASSWORDS
)
def test_a_secret_parameter_is_hidden(name: str, value: str):
    value = "".join(sign for sign in value if sign not in "&;#") or "x"
    for place in ("db", "db:5432"):
        address = f"postgresql://{place}/studies?user=fcer&{name}={{}}&timeout=5"
        assert masked(address.format(value)) == address.format("***")


@given(
    st.text("abcXYZ:/ _~%-!", min_size=1).filter(lambda text: text.strip() and "://" not in text),
    st.sampled_from(["no answer from {}: is it up?", "storage {} (see a@b.c)", "'{}'"]),
)
def test_a_databases_password_may_have_blanks_within_a_sentence(password: str, sentence: str):
    hidden = sentence.format("postgresql://fcer:***@db:5432/studies")
    assert masked(sentence.format(f"postgresql://fcer:x{password}@db:5432/studies")) == hidden


@given(st.text("abcXYZ019@:_~%-!", min_size=1).filter(lambda text: not text[0].isdigit()))
def test_an_address_without_a_scheme_is_one(password: str):
    assert masked(f"tried //fcer:{password}@db/studies first") == "tried //fcer:***@db/studies first"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://127.0.0.1:5000 does not answer: ask a@b.c",
        "at postgresql://db:5432/studies: refused; mail a@b.c",
        "at postgresql://db: refused; mail a@b.c",
        "https://[::1]:5000 or a@b.c",
        "//cdn:8080/npm/pkg@1.2.3 and //server/share:x@y",
        "// note: mail a@b",
        "sqlite:////tmp/a:b@c/mlflow.db",
        "sqlite:///work/studies.db?timeout=5",
        "http://127.0.0.1:5000",
        "http://host:5000/path?mail=a@b",
        "models:/fcer-student@champion",
        "postgresql://fcer@db/studies",
        "https://[::1]:5000/#a",
        "data/wsts and a@b.c: 5 # no address",
    ],
)
def test_what_holds_no_secret_stays_as_it_is(text: str):
    assert masked(text) == text


@pytest.mark.parametrize("text", ["https://ghp_token@host/x", "https://ghp_token@[::1"])
def test_a_user_without_a_password_is_taken_for_a_token(text: str):
    assert masked(text) == text.replace("ghp_token", "***")


@given(st.text())
def test_any_text_can_be_masked_again(text: str):
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize("secret", ["postgresql://u:p@ss@db/x", "mysql://db/x?password=p@ss"])
def test_a_configuration_that_is_shown_has_no_secret(secret: str):
    shown = to_yaml(resolve(flags={"storage": secret}))
    assert "ss@" not in shown and "@ss" not in shown and "***" in shown


def test_a_long_word_takes_no_longer_than_its_length():
    """A path of 100 000 letters in a configuration took 40 s to print."""
    text = "x" * 1_000_000
    assert masked(text) == text
