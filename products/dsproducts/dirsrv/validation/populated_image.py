"""An image with a filled instance of its own server, made once for each image."""

from __future__ import annotations

from dataclasses import dataclass

from dsharness.containers.container import Container, Options, finished
from dsharness.containers.engine import last_line
from dsharness.content_key import content_key
from dsharness.errors import EngineError
from dsharness.model import DirectoryContent, Image, Settings
from dsharness.systems import Seed
from dsimages.buildah import keyed_image, labels_of
from dsproducts.dirsrv.validation.population import (
    Population,
    add_default_user,
    add_scheme_users,
    dump_of,
    fill,
)
from dsproducts.dirsrv.validation.validated_server import (
    TlsServer,
    ValidatedServer,
    validated_server,
)
from dsvalidate.installs_gate import KIND
from dsvalidate.step_tools import StepTools

REVISION = 3  # raised when the same image would be filled in another way
KEPT = "/opt/dsbisect-population.json"
READ_LIMIT_S = 60.0
SEED = Seed(content=DirectoryContent(number=0), settings=Settings(id="default"))


@dataclass(frozen=True, kw_only=True)
class Populated:
    """The instance is stopped; its configuration is the distribution's but for cache sizes."""

    reference: str
    key: str
    population: Population


def populated(tools: StepTools, image: Image) -> Populated:
    """Find it, or make it now; InstanceError when the server cannot be created or filled."""
    key = content_key(["validated", REVISION, image.key, TlsServer.revision])

    def make(reference: str) -> None:
        tools.progress(f"creating and filling a directory with {image.candidate_id}'s server")
        with validated_server(tools, image.reference, purpose="populate") as server:
            server.system.create(server.box, SEED)
            server.start()
            population = _filled(server)
            server.stop()
            server.forget_scheme()
            store(server.box, population)
            server.box.commit(reference, labels_of(KIND, row=image.candidate_id, key=key))

    reference = keyed_image(tools.at, KIND, key, make)
    return Populated(reference=reference, key=key, population=recalled(tools, reference))


def store(box: Container, population: Population) -> None:
    """Keep what is known of the directory with it."""
    text = population.model_dump_json()
    box.must("sh", "-c", 'cat >"$1"', "sh", KEPT, stdin=text, what="keep what was filled in")


def recalled(tools: StepTools, reference: str) -> Population:
    """Read what is known of an image's directory."""
    done = finished(
        tools.engine,
        reference,
        "cat",
        KEPT,
        purpose="validate-recall",
        limit_s=READ_LIMIT_S,
        options=Options(),
    )
    if not done.ok:
        raise EngineError(
            f"{reference}: what it was filled with cannot be read: {last_line(done)}",
            hint="`dsbisect clean --golden` removes it; it is then made again",
        )
    return Population.model_validate_json(done.stdout)


def _filled(server: ValidatedServer) -> Population:
    with server.manager() as directory:
        fill(directory)
        users = add_scheme_users(directory, "old-")
        users = (*users, add_default_user(directory, "old-default"))
        return Population(users=users, dump=dump_of(directory))
