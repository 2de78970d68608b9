"""A key-value store over HTTP: JSON values by key, with versions, expiry and counters, in one SQLite file.

    GET    /entries?prefix=&limit=&after=   keys in order, in pages
    GET    /entries/{key}                   the value, its version and the time of its last change
    PUT    /entries/{key}                   {value, ttl?, if_version?}
    DELETE /entries/{key}
    POST   /entries/{key}/increment         {by?}
    GET    /health
"""

import json
import os
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

STATE = os.environ.get("RELIC_STATE", ".")
PORT = int(os.environ.get("RELIC_PORT", "8080"))
MAX_KEY_CHARS = 512
MAX_VALUE_CHARS = 262_144
MAX_BODY_BYTES = 1_048_576
MAX_STORE_BYTES = 48 * 1_048_576
PAGE_BYTES = 4_096
MAX_PAGE_ROWS = 1_000


class ServiceError(Exception):
    def __init__(self, status, message, **details):
        super().__init__(message)
        self.status = status
        self.body = {"error": message, **details}


class Store:
    """One connection, one writer at a time; a change is on disk before it is answered."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.executescript(
            f"""
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            PRAGMA page_size = {PAGE_BYTES};
            PRAGMA max_page_count = {MAX_STORE_BYTES // PAGE_BYTES};
            CREATE TABLE IF NOT EXISTS entries (
              key TEXT PRIMARY KEY, value TEXT NOT NULL, version INTEGER NOT NULL,
              updated_at REAL NOT NULL, expires_at REAL
            ) WITHOUT ROWID;
            CREATE INDEX IF NOT EXISTS by_expiry ON entries (expires_at) WHERE expires_at IS NOT NULL;
            """
        )

    def get(self, key):
        with self.lock:
            return self._entry(key)

    def list(self, prefix, limit, after):
        with self.lock:
            self._expire()
            rows = self.db.execute(
                "SELECT key, version, updated_at, length(value) FROM entries "
                "WHERE substr(key, 1, length(?)) = ? AND key > ? AND key >= ? ORDER BY key LIMIT ?",
                (prefix, prefix, after, prefix, limit + 1),
            ).fetchall()
        keys = [
            {"key": key, "version": version, "updated_at": iso(updated), "chars": chars}
            for key, version, updated, chars in rows[:limit]
        ]
        return {"entries": keys, "more": len(rows) > limit}

    def set(self, key, value, ttl, if_version):
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        if len(text) > MAX_VALUE_CHARS:
            raise ServiceError(413, f"the value has {len(text)} characters of JSON (allowed: {MAX_VALUE_CHARS})")
        with self.lock:
            known = self._entry(key)
            if if_version is not None and known["version"] != if_version:
                raise ServiceError(409, f'the key "{key}" has version {known["version"]}, not {if_version}', version=known["version"])
            return self._write(key, text, known["version"] + 1, None if ttl is None else time.time() + ttl)

    def increment(self, key, by):
        with self.lock:
            known = self._entry(key)
            value = known["value"] if known["found"] else 0
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ServiceError(409, f'the value of "{key}" is not a number')
            text = json.dumps(value + by)
            return self._write(key, text, known["version"] + 1, known["expires_at"])

    def delete(self, key):
        with self.lock:
            existed = self._entry(key)["found"]
            self.db.execute("DELETE FROM entries WHERE key = ?", (key,))
            return {"key": key, "deleted": existed}

    def count(self):
        with self.lock:
            self._expire()
            return self.db.execute("SELECT count(*) FROM entries").fetchone()[0]

    def _entry(self, key):
        self._expire()
        row = self.db.execute("SELECT value, version, updated_at, expires_at FROM entries WHERE key = ?", (key,)).fetchone()
        if row is None:
            return {"key": key, "found": False, "value": None, "version": 0, "updated_at": None, "expires_at": None}
        value, version, updated, expires = row
        return {
            "key": key,
            "found": True,
            "value": json.loads(value),
            "version": version,
            "updated_at": iso(updated),
            "expires_at": expires,
        }

    def _write(self, key, text, version, expires):
        self.db.execute(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value, "
            "version = excluded.version, updated_at = excluded.updated_at, expires_at = excluded.expires_at",
            (key, text, version, time.time(), expires),
        )
        return {"key": key, "value": json.loads(text), "version": version}

    def _expire(self):
        self.db.execute("DELETE FROM entries WHERE expires_at <= ?", (time.time(),))


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def number(value, name, low, high, default):
    if value is None:
        return default
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = None
    if isinstance(value, bool) or found is None or not low <= found <= high:
        raise ServiceError(400, f"{name}: expected a number from {low} to {high}, got {json.dumps(value)}")
    return int(found) if found.is_integer() else found


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        try:
            status, body = 200, self.route()
        except ServiceError as error:
            status, body = error.status, error.body
        except sqlite3.OperationalError as error:
            full = "full" in str(error)
            status, body = (507, {"error": f"the store is full ({MAX_STORE_BYTES} bytes)"}) if full else (500, {"error": str(error)})
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def route(self):
        url = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        parts = [unquote(part) for part in url.path.split("/")[1:]]
        body = self.body()
        match (self.command, parts):
            case ("GET", ["health"]):
                return {"status": "healthy", "entries": store.count()}
            case ("GET", ["entries"]):
                limit = number(query.get("limit"), "limit", 1, MAX_PAGE_ROWS, 100)
                return store.list(query.get("prefix", ""), limit, query.get("after", ""))
            case ("GET", ["entries", key]):
                return public(store.get(checked(key)))
            case ("PUT", ["entries", key]):
                if "value" not in body:
                    raise ServiceError(400, "value: missing; expected any JSON value")
                ttl = number(body.get("ttl"), "ttl", 0.001, 315_360_000, None)
                version = number(body.get("if_version"), "if_version", 0, 2**53, None)
                return store.set(checked(key), body["value"], ttl, version)
            case ("POST", ["entries", key, "increment"]):
                return store.increment(checked(key), number(body.get("by"), "by", -(2**53), 2**53, 1))
            case ("DELETE", ["entries", key]):
                return store.delete(checked(key))
        raise ServiceError(404, f"no route {self.command} {url.path}")

    def body(self):
        size = int(self.headers.get("content-length") or 0)
        if size > MAX_BODY_BYTES:
            raise ServiceError(413, f"the body has {size} bytes (allowed: {MAX_BODY_BYTES})")
        text = self.rfile.read(size)
        try:
            body = json.loads(text) if text else {}
        except (ValueError, RecursionError) as error:
            raise ServiceError(400, f"the body is not JSON: {error}") from error
        if not isinstance(body, dict):
            raise ServiceError(400, "the body is not a JSON object")
        return body

    def log_message(self, *_):
        pass


def public(entry):
    expires = entry["expires_at"]
    return {**entry, "expires_at": None if expires is None else iso(expires)}


def checked(key):
    if not 0 < len(key) <= MAX_KEY_CHARS:
        raise ServiceError(400, f"key: expected 1 to {MAX_KEY_CHARS} characters, got {len(key)}")
    return key


store = Store(os.path.join(STATE, "entries.sqlite"))
ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
