"""How a registry is named: what podman reads another way is refused; no secret is shown."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dsharness.errors import UsageError
from dsimages.registry import Registry

HOSTS = st.sampled_from(["registry.example.org", "10.0.0.7", "lab-1.example.org", "a.b"])
PORTS = st.sampled_from(["", ":5000", ":443"])
PATHS = st.sampled_from(["/lab", "/team/lab", "/a-b/c_d", "/x.y"])
PLAIN = "--tls-verify=false"


@given(host=HOSTS, port=PORTS, path=PATHS, insecure=st.booleans())
def test_elsewhere_tls_is_used_unless_it_is_waived(
    host: str, port: str, path: str, insecure: bool
) -> None:
    found = Registry.named(host + port + path, insecure=insecure)
    assert found.place == host + port + path
    assert (PLAIN in found.flags) is insecure


@pytest.mark.parametrize("host", ["127.0.0.1:5000", "127.0.0.1", "127.3.2.1:1", "localhost"])
def test_on_loopback_it_is_not_needed(host: str) -> None:
    assert Registry.named(f"{host}/lab", insecure=False).flags == (PLAIN,)


@pytest.mark.parametrize("host", ["127.0.0.1.example.org", "localhost.example.org", "localhost1:5"])
def test_what_only_sounds_like_loopback_is_not(host: str) -> None:
    assert Registry.named(f"{host}/lab", insecure=False).flags == ()


@pytest.mark.parametrize(
    "text",
    [
        "registry.example.org",  # no path
        "registry.example.org/",
        "https://registry.example.org/lab",
        "registry/lab",  # a part of a name on Docker Hub
        "lab",
        "registry.example.org/lab:tag",
        f"registry.example.org/lab@sha256:{'a' * 64}",
        "registry.example.org/Lab",
        "registry.example.org/lab --creds=a:b",
        "--tls-verify=false/lab",
        "registry.example.org/../lab",
        "registry.example.org:/lab",
        "registry.example.org:500000/lab",
        "",
    ],
)
def test_anything_else_is_one_clear_error(text: str) -> None:
    with pytest.raises(UsageError, match=r"not HOST\[:PORT\]/PATH") as caught:
        Registry.named(text, insecure=False)
    assert "podman login" in caught.value.hint


@given(user=st.text(min_size=1), secret=st.text(min_size=1))
@example(user="lab", secret="s3cret")
def test_credentials_in_it_are_refused_and_not_shown(user: str, secret: str) -> None:
    with pytest.raises(UsageError) as caught:
        Registry.named(f"{user}:{secret}@registry.example.org/lab", insecure=False)
    assert str(caught.value).startswith("--registry with credentials in it: ")


@given(text=st.text())
def test_a_name_that_is_taken_is_never_an_option_or_a_transport(text: str) -> None:
    try:
        found = Registry.named(text, insecure=False)
    except UsageError:
        return
    assert not found.place.startswith("-")
    assert not {" ", "@", "//"} & {found.place, *found.place}
