"""A small SQL database over HTTP: SQLite with limits on time, rows and size.

    POST /query    {sql, params?, limit?}                   read-only
    POST /execute  {sql, params?}                           one statement
    POST /batch    {statements: [{sql, params?}, …]}        one transaction
    GET  /tables                                            tables with their columns
    GET  /health
"""

import json
import os
import sqlite3
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

STATE = os.environ.get("RELIC_STATE", ".")
PORT = int(os.environ.get("RELIC_PORT", "8080"))
MAX_SQL_CHARS = 65_536
MAX_STATEMENTS = 1_000
MAX_BODY_BYTES = 1_048_576
MAX_STORE_BYTES = 48 * 1_048_576
PAGE_BYTES = 4_096
MAX_ROWS = 10_000
MAX_RESULT_CHARS = 524_288
MAX_SECONDS = 20

READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
# these open other files, which have no size limit
NEVER = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}
HARMLESS_PRAGMAS = {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list", "user_version"}


class ServiceError(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Database:
    """One connection, one statement at a time; a change is on disk before it is answered."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.reading = False
        self.until = 0.0
        self.db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self.db.executescript(
            f"""
            PRAGMA journal_mode = WAL;
            PRAGMA synchronous = FULL;
            PRAGMA page_size = {PAGE_BYTES};
            PRAGMA max_page_count = {MAX_STORE_BYTES // PAGE_BYTES};
            PRAGMA foreign_keys = ON;
            """
        )
        self.db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_BODY_BYTES)
        self.db.set_authorizer(self._authorize)
        self.db.set_progress_handler(lambda: time.monotonic() > self.until, 10_000)

    def query(self, sql, params, limit):
        with self.lock:
            self.reading = True
            try:
                return self._rows(self._run(sql, params), limit)
            finally:
                self.reading = False

    def execute(self, sql, params):
        with self.lock:
            return self._changed(self._run(sql, params))

    def batch(self, statements):
        with self.lock:
            self.until = time.monotonic() + MAX_SECONDS
            self.db.execute("BEGIN IMMEDIATE")
            try:
                results = [self._changed(self._run(sql, params)) for sql, params in statements]
                self.until = time.monotonic() + MAX_SECONDS
                self.db.execute("COMMIT")
                return {"results": results}
            except BaseException:
                self.until = time.monotonic() + MAX_SECONDS
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def tables(self):
        with self.lock:
            self.until = time.monotonic() + MAX_SECONDS
            names = self.db.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
            ).fetchall()
            return {
                "tables": [
                    {
                        "name": name,
                        "type": kind,
                        "columns": [
                            {"name": column[1], "type": column[2], "required": bool(column[3]), "key": bool(column[5])}
                            for column in self.db.execute(f'PRAGMA table_info("{name.replace(chr(34), chr(34) * 2)}")')
                        ],
                    }
                    for name, kind in names
                ]
            }

    def _run(self, sql, params):
        self.until = time.monotonic() + MAX_SECONDS
        return self.db.execute(sql, params)

    def _rows(self, cursor, limit):
        columns = [column[0] for column in cursor.description or []]
        rows, chars, more = [], 0, False
        for row in cursor:
            shown = [shape(value) for value in row]
            chars += len(json.dumps(shown, ensure_ascii=False))
            if len(rows) == limit or chars > MAX_RESULT_CHARS:
                more = True
                break
            rows.append(shown)
        cursor.close()
        return {"columns": columns, "rows": rows, "more": more}

    def _changed(self, cursor):
        if cursor.description is not None:
            return {**self._rows(cursor, MAX_ROWS), "changes": max(cursor.rowcount, 0)}
        return {"changes": max(cursor.rowcount, 0), "last_id": cursor.lastrowid}

    def _authorize(self, action, first, second, *_):
        if action in NEVER or (action == sqlite3.SQLITE_FUNCTION and second in {"load_extension", "writefile", "readfile"}):
            return sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA:
            allowed = (first or "").lower() in HARMLESS_PRAGMAS and (second is None or first != "user_version")
            return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
        if self.reading and action not in READING:
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def shape(value):
    return value.hex() if isinstance(value, bytes) else value


def statement(given):
    sql, params = given.get("sql"), given.get("params", [])
    if not isinstance(sql, str) or not 0 < len(sql.strip()) <= MAX_SQL_CHARS:
        raise ServiceError(400, f"sql: expected one statement of at most {MAX_SQL_CHARS} characters")
    values = params.values() if isinstance(params, dict) else params
    if not isinstance(params, (list, dict)) or any(isinstance(value, (list, dict)) for value in values):
        raise ServiceError(400, "params: expected a list, or an object by name, of strings, numbers, true, false and null")
    return sql, params


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        try:
            status, body = 200, self.route()
        except ServiceError as error:
            status, body = error.status, {"error": str(error)}
        except sqlite3.OperationalError as error:
            if "interrupted" in str(error):
                status, body = 408, {"error": f"the statement ran longer than {MAX_SECONDS} s"}
            elif "full" in str(error):
                status, body = 507, {"error": f"the database is full ({MAX_STORE_BYTES} bytes)"}
            else:
                status, body = 400, {"error": str(error)}
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError) as error:
            refused = "not authorized" in str(error) or "prohibited" in str(error)
            status, body = (403 if refused else 400), {"error": str(error)}
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = answer

    def route(self):
        body = self.body()
        match (self.command, urlsplit(self.path).path):
            case ("GET", "/health"):
                return {"status": "healthy"}
            case ("GET", "/tables"):
                return database.tables()
            case ("POST", "/query"):
                limit = body.get("limit", 1_000)
                if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_ROWS:
                    raise ServiceError(400, f"limit: expected an integer from 1 to {MAX_ROWS}")
                return database.query(*statement(body), limit)
            case ("POST", "/execute"):
                return database.execute(*statement(body))
            case ("POST", "/batch"):
                statements = body.get("statements")
                if not isinstance(statements, list) or not 0 < len(statements) <= MAX_STATEMENTS:
                    raise ServiceError(400, f"statements: expected a list of 1 to {MAX_STATEMENTS} objects with sql")
                return database.batch([statement(each if isinstance(each, dict) else {}) for each in statements])
        raise ServiceError(404, f"no route {self.command} {self.path}")

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


database = Database(os.path.join(STATE, "database.sqlite"))
ThreadingHTTPServer.daemon_threads = True
ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
