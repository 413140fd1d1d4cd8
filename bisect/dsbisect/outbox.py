"""Where the text of an alarm goes when a person releases it: a file, a mail, an issue, a webhook.

Nothing leaves this machine by itself. Tokens and passwords come from the environment and are in no
argument, message or log.
"""

from __future__ import annotations

import ipaddress
import json
import os
import queue
import re
import smtplib
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dsharness.errors import RefusedError, UnreachableError, UsageError
from dsharness.plain_text import without_credentials
from dsharness.process.command import atomic_write
from dsresults.watch.alarms import Alarm

LIMIT_S = 30.0  # for the whole of an answer
MOST_ANSWER = 1 << 20  # bytes
MOST_TITLE = 200
GITHUB, GITLAB = "https://api.github.com", "https://gitlab.com/api/v4"
PROJECT = re.compile(r"[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)+")
T = TypeVar("T")
FORMS = "file:PATH, mail:ADDRESS, github:OWNER/NAME, gitlab:GROUP/NAME or an https:// address"


def _within(work: Callable[[], T], name: str) -> T:
    """What it gives within the limit: that of each single wait does not end what drips."""
    answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()

    def answer() -> None:
        try:
            answers.put(work())
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            answers.put(error)

    threading.Thread(target=answer, name="delivery", daemon=True).start()
    try:
        outcome = answers.get(timeout=LIMIT_S)
    except queue.Empty:
        raise UnreachableError(
            f"{name}: no whole answer within {LIMIT_S:g} s; it may have come there",
            hint="look there before you release it again",
        ) from None
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nothing: a POST would go on as a GET, which delivers nothing, with the token."""

    def redirect_request(self, *_: Any, **__: Any) -> None:  # noqa: ANN401 - as it is called
        return


class Outlet(Protocol):
    """One way to deliver."""

    def __str__(self) -> str: ...

    def send(self, alarm: Alarm) -> str:
        """Deliver, and say where it is now."""
        ...


def outlet(text: str, environment: Mapping[str, str] = os.environ) -> Outlet:
    """The way that is spelled so; UsageError for what is none, or lacks its token."""
    if not text.isprintable():
        raise UsageError(f"--to {text!r}: it holds control characters", hint=f"write {FORMS}")
    kind, _, place = text.partition(":")
    if kind == "file" and place:
        return FileOutlet(path=Path(place))
    if kind == "mail" and re.fullmatch(r"[^@\s]+@[^@\s]+", place):
        server = environment.get("DSBISECT_SMTP") or "localhost:25"
        host, _, port = server.partition(":")
        if not host or not (port or "25").isdecimal():
            raise UsageError(f"$DSBISECT_SMTP is {server!r}", hint="name a mail server: HOST:PORT")
        sender = environment.get("DSBISECT_MAIL_FROM", "dsbisect@localhost")
        return MailOutlet(host=host, port=int(port or 25), sender=sender, to=place)
    if kind in {"http", "https"}:
        _refuse_clear_text(text, f"--to {text}")
        return PostOutlet(name=text, url=text)
    if kind == "github" and PROJECT.fullmatch(place):
        base = _base(environment, "GITHUB_API_URL", GITHUB)
        headers = {"Authorization": f"Bearer {_token(environment, 'GITHUB_TOKEN')}"}
        return PostOutlet(
            name=text, url=f"{base}/repos/{place}/issues", headers=headers, link="html_url"
        )
    if kind == "gitlab" and PROJECT.fullmatch(place):
        base = _base(environment, "GITLAB_API_URL", GITLAB)
        headers = {"PRIVATE-TOKEN": _token(environment, "GITLAB_TOKEN")}
        quoted = urllib.parse.quote(place, safe="")
        return PostOutlet(
            name=text,
            url=f"{base}/projects/{quoted}/issues",
            headers=headers,
            body="description",
            link="web_url",
        )
    raise UsageError(f"--to {text}: no place to deliver to", hint=f"write {FORMS}")


def _base(environment: Mapping[str, str], name: str, usual: str) -> str:
    """Where the token goes, so that it is encrypted on the way."""
    base = environment.get(name) or usual
    _refuse_clear_text(base, f"${name} is {base}")
    return base.rstrip("/")


def _refuse_clear_text(url: str, spelled: str) -> None:
    """UsageError for what has no host, or would go over a network without TLS."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        parts = urllib.parse.SplitResult("", "", "", "", "")
    host = parts.hostname
    if not host:
        raise UsageError(
            f"{without_credentials(spelled)}: no host to deliver to", hint=f"write {FORMS}"
        )
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_this_machine(host)):
        raise UsageError(
            f"{without_credentials(spelled)}: the text would go there unencrypted",
            hint="write https://; http:// is for this machine alone",
        )


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _token(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise UsageError(
            f"${name} is not set", hint=f"put a token that may write issues into ${name}"
        )
    return environment[name]


@dataclass(frozen=True, kw_only=True)
class FileOutlet:
    """Writes it as Markdown."""

    path: Path

    def __str__(self) -> str:
        return f"file {self.path}"

    def send(self, alarm: Alarm) -> str:
        try:
            atomic_write(self.path, f"{alarm.title}\n\n{alarm.text}")
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror or error}",
                hint="name a file in a folder that you may write to",
            ) from error
        return str(self.path)


@dataclass(frozen=True, kw_only=True)
class MailOutlet:
    """Sends it as plain text by an SMTP server."""

    host: str
    port: int
    sender: str
    to: str

    def __str__(self) -> str:
        return f"mail to {self.to} by {self.host}:{self.port}"

    def send(self, alarm: Alarm) -> str:
        message = EmailMessage()
        message["Subject"] = " ".join(alarm.title.split())[:MOST_TITLE]
        message["From"], message["To"] = self.sender, self.to
        message.set_content(alarm.text)

        def sent() -> None:
            with smtplib.SMTP(self.host, self.port, timeout=LIMIT_S) as server:
                server.send_message(message)

        try:
            _within(sent, f"the mail server {self.host}:{self.port}")
        except (OSError, smtplib.SMTPException) as error:
            raise UnreachableError(
                f"the mail to {self.to} was not taken: {error}",
                hint="$DSBISECT_SMTP names the server: HOST:PORT",
            ) from error
        return self.to


@dataclass(frozen=True, kw_only=True)
class PostOutlet:
    """Posts it as JSON: an issue of GitHub or GitLab, or a webhook."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: str = "body"  # what the text is called there
    link: str = ""  # what the address of the new issue is called

    def __str__(self) -> str:
        return f"{self.name} (POST {self.url})"

    def send(self, alarm: Alarm) -> str:
        title = " ".join(alarm.title.split())[:MOST_TITLE]
        document = {"title": title, self.body: alarm.text}
        request = urllib.request.Request(  # noqa: S310 - http or https, as outlet() has checked
            self.url,
            data=json.dumps(document).encode(),
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json",
                "User-Agent": "dsbisect",
                **self.headers,
            },
        )

        def posted() -> bytes:
            with self._opener().open(request, timeout=LIMIT_S) as answer:
                return bytes(answer.read(MOST_ANSWER))

        try:
            reply = _within(posted, self.name)
        except urllib.error.HTTPError as error:
            error.close()
            moved = error.headers.get("Location", "") if 300 <= error.code < 400 else ""
            raise RefusedError(
                f"{self.name} refused it: {error.code} {error.reason}",
                hint=f"it has moved, name the new place: {moved}"
                if moved
                else "check the project's name, and what the token may do",
            ) from error
        except OSError as error:
            raise UnreachableError(
                f"{self.name} cannot be reached: {error}", hint="check the address and the network"
            ) from error
        return _link(reply, self.link) or self.name

    def _opener(self) -> urllib.request.OpenerDirector:
        """By no proxy to this machine: what is not encrypted would leave it."""
        direct = [urllib.request.ProxyHandler({})] if self.url.startswith("http:") else []
        return urllib.request.build_opener(_Stay, *direct)


def _link(reply: bytes, field_name: str) -> str:
    try:
        link = json.loads(reply).get(field_name, "") if field_name else ""
    except (ValueError, AttributeError):
        return ""
    return link if isinstance(link, str) and link.startswith("http") else ""
