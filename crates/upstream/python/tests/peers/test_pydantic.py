"""Tools with pydantic's types, in an environment that has pydantic and httpx and no fastmcp."""

import http.server
import json
import os
import threading
import unittest
import urllib.parse

from interpreters import python

from dock import EXAMPLES, Worker, scan

SOURCE = '''
from __future__ import annotations
from typing import Annotated, List, Optional
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, PositiveInt, ConfigDict
from pydantic.dataclasses import dataclass as checked
from fastmcp.tools import tool

class User(BaseModel):
    """A user."""
    id: int
    title: str = Field("t", description="Its title", min_length=1)
    friend: Optional[User] = None

class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    inner_name: int = Field(alias="innerName")

@checked
class Checked:
    n: PositiveInt = 1

def even(n: int) -> int:
    if n % 2:
        raise ValueError("must be even")
    return n

@tool
def befriend(user: User, others: List[User]) -> User:
    """Befriend."""
    return User(id=others[0].id, friend=user)

@tool
def several(url: HttpUrl, n: PositiveInt, c: Checked, e: Annotated[int, AfterValidator(even)]) -> str:
    """Several."""
    return repr((str(url), n, c, e))

@tool
def aliased(a: Aliased) -> Aliased:
    """Aliased."""
    return a

@tool
def users() -> list[User]:
    """Users."""
    return [User(id=1)]

@tool
def loose() -> User:
    """A dictionary where a model was promised."""
    return {"id": 1}

@tool
def wrong() -> User:
    """Not what was promised."""
    return {"id": "one"}

@tool
def limits(n: Annotated[int, Field(ge=1, le=9, description="n")], s: str = Field("x", max_length=3, examples=["a"])) -> int:
    """Limits."""
    return n
'''


class Pydantic(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.worker = Worker({"t.py": SOURCE}, python=python("pydantic"))
        cls.addClassCleanup(cls.worker.__exit__)

    def test_file_is_loaded_without_fastmcp(self):
        self.assertEqual(self.worker.ready["faults"], [])
        self.assertIsNone(self.worker.ready["fastmcp"])

    # TD-149: models have rules that no schema tells, so the gateway leaves them to the worker.
    def test_tools_with_models_are_not_exact(self):
        self.assertEqual(self.worker.ready["exact"], ["users", "loose", "wrong", "limits"])

    # TD-48.
    def test_models_become_schemas_without_made_up_titles(self):
        schema = self.worker.definition("befriend")["inputSchema"]
        self.assertEqual(schema["properties"], {"user": {"$ref": "#/$defs/User"},
                                                "others": {"type": "array", "items": {"$ref": "#/$defs/User"}}})
        user = schema["$defs"]["User"]
        self.assertEqual(user["properties"]["title"],
                         {"type": "string", "default": "t", "description": "Its title", "minLength": 1})
        self.assertEqual((user["required"], user["description"]), (["id"], "A user."))
        self.assertNotIn("title", user)
        self.assertEqual(self.worker.definition("users")["outputSchema"]["properties"]["result"]["type"], "array")
        self.assertEqual(self.worker.definition("befriend")["outputSchema"]["type"], "object")

    def test_models_are_built_and_returned(self):
        done = self.worker.result("befriend", {"user": {"id": 1}, "others": [{"id": 2}]})
        self.assertEqual(done["structuredContent"], {"id": 2, "title": "t", "friend": {"id": 1, "title": "t", "friend": None}})
        self.assertEqual(self.worker.text("several", {"url": "http://a.b/", "n": 1, "c": {"n": 2}, "e": 4}),
                         "('http://a.b/', 1, Checked(n=2), 4)")
        self.assertEqual(self.worker.result("aliased", {"a": {"innerName": 1}})["structuredContent"], {"innerName": 1})
        self.assertEqual(self.worker.result("users")["structuredContent"]["result"][0]["id"], 1)
        self.assertEqual(self.worker.result("loose")["structuredContent"]["title"], "t")

    # TD-149
    def test_faults_of_models_are_named(self):
        error = self.worker.error("befriend", {"user": {"id": "one", "title": ""}, "others": [{}]})
        self.assertEqual(sorted(one["path"] for one in error["details"]["errors"]),
                         ["/others/0/id", "/user/id", "/user/title"])
        error = self.worker.error("several", {"url": "no", "n": 0, "c": {"n": -1}, "e": 3})
        self.assertEqual(sorted(one["path"] for one in error["details"]["errors"]), ["/c/n", "/e", "/n", "/url"])
        self.assertIn("its return hint does not allow", self.worker.error("wrong")["message"])

    def test_field_says_the_same_read_and_alive(self):
        read = {tool["definition"]["name"]: tool for tool in scan(("t.py", SOURCE))[0]["tools"]}
        self.assertEqual(read["limits"]["definition"], self.worker.definition("limits"))
        self.assertTrue(read["limits"]["exact"])
        for name in ("befriend", "several", "aliased", "users", "loose"):
            self.assertFalse(read[name]["exact"], name)
        self.assertEqual(self.worker.error("limits", {"n": 10, "s": "long"})["details"]["errors"], [
            {"path": "/n", "message": "must be at most 9"}, {"path": "/s", "message": "must have at most 3 characters"}])


class Weather(unittest.TestCase):
    # The seed's async example, with a weather service on loopback.
    def test_weather_is_asked_of_the_configured_service(self):
        asked = []

        class Service(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(urllib.parse.urlsplit(self.path))
                body = json.dumps({"name": "Berlin", "main": {"temp": 21.5, "humidity": 40},
                                   "weather": [{"description": "clear"}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        server = http.server.HTTPServer(("127.0.0.1", 0), Service)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = {"WEATHER_BASE_URL": "http://127.0.0.1:%d" % server.server_port, "WEATHER_API_KEY": "k"}
        with Worker(folder=os.path.join(EXAMPLES, "async-tool"), python=python("pydantic"), env=env) as worker:
            self.assertEqual(worker.ready["faults"], [])
            done = worker.result("get_weather", {"city": "Berlin"})
            self.assertEqual(done["structuredContent"],
                             {"city": "Berlin", "temperature": 21.5, "description": "clear", "humidity": 40})
        self.assertEqual(asked[0].path, "/data/2.5/weather")
        self.assertEqual(urllib.parse.parse_qs(asked[0].query), {"q": ["Berlin"], "units": ["metric"], "appid": ["k"]})


if __name__ == "__main__":
    unittest.main()
