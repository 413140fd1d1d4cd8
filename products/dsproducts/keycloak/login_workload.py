"""What loginload asks for: users of a directory log in at an identity provider over it."""

# Every value is frozen, which pyright does not read off the model's configuration.
# pyright: reportIncompatibleVariableOverride=false, reportIncompatibleMethodOverride=false

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from dsharness.model import DirectoryContent
from dsharness.model.workload import Connections, DirectoryWorkload, ScheduledWorkload


class LoginWorkload(DirectoryWorkload, ScheduledWorkload):
    """Logins by OpenID Connect, each of four requests, by the lab's own load."""

    protocol: ClassVar[str] = "oidc"
    settles: ClassVar[bool] = True  # Java compiles what it runs often
    tool: Literal["loginload"] = "loginload"
    operation: Literal["login"] = "login"
    threads: Connections = Field(default=4, description="browsers, each with one login at a time")

    @property
    def request_lines(self) -> tuple[str, ...]:
        return (
            "get the form of the authorization endpoint",
            "post name and password of {user} to it",
            "change the code that this gives for a token",
            "ask userinfo with the token",
        )

    @property
    def content(self) -> DirectoryContent:
        return DirectoryContent(number=self.users, passwords=self.distinct_users)
