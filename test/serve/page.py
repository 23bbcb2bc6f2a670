"""The page of `offbeat serve` in a headless Chromium: services, profiles, comparisons, sessions, ingest, the token, and what it shows where
nothing is. Keeps screenshots.

    page.py OFFBEAT FOLDER      FOLDER: for the screenshots

SPDX-License-Identifier: MIT"""
import base64
import contextlib
import gzip
import http.server
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parents[1]), str(pathlib.Path(__file__).resolve().parent)]
import chromium  # noqa: E402
import svg  # noqa: E402
from server_process import ROOT, administer, chunk_envelope, envelope, item, new_token, running  # noqa: E402
from tap import case, check, check_equal, main, skip, wait_until  # noqa: E402

OFFBEAT, PICTURES = sys.argv[1], pathlib.Path(sys.argv[2])
NOW = int(time.time())
STACKS = {"shop@1.0": [("main", "serve", "read_request", "parse"), ("main", "serve", "render", "template"), ("main", "serve", "query", "wait_for_row"),
                       ("main", "idle")],
          "shop@2.0": [("main", "serve", "read_request", "parse"), ("main", "serve", "render", "template", "escape"), ("main", "serve", "render", "highlight"),
                       ("main", "idle")],
          "mail@1.3": [("start", "queue", "send"), ("start", "queue", "retry", "send")]}


def profile(release, threads=("1", "2"), start=NOW - 600, samples=400):
    """Each thread runs through the stacks of RELEASE, some longer than others."""
    names = sorted({name for stack in STACKS[release] for name in stack})
    stacks = [[names.index(name) for name in reversed(stack)] for stack in STACKS[release]]
    rows = [{"timestamp": round(start + i * 0.01 + 0.002 * place, 6), "stack_id": (i // (7 + place) + place) % len(stacks) if i % 5 else 0, "thread_id": thread}
            for i in range(samples) for place, thread in enumerate(threads)]
    return {"frames": [{"function": name, "in_app": name != "idle", "filename": "shop.py", "lineno": 10 + i} for i, name in enumerate(names)],
            "stacks": stacks, "samples": rows,
            "thread_metadata": {thread: {"name": ("MainThread", "worker")[place]} for place, thread in enumerate(threads)}}


def transaction(start):
    spans = [{"span_id": f"{i:016x}", "trace_id": "c" * 32, "start_timestamp": start + i * 0.5, "timestamp": start + i * 0.5 + 0.4, "op": op, "description": text}
             for i, (op, text) in enumerate((("db", "SELECT * FROM orders"), ("http", "GET /price"), ("template", "render page")), 1)]
    return {"type": "transaction", "event_id": "b" * 32, "transaction": "GET /cart <b>", "release": "shop@1.0", "environment": "production",
            "start_timestamp": start, "timestamp": start + 2.5, "platform": "python", "spans": spans,
            "contexts": {"trace": {"trace_id": "c" * 32, "span_id": "d" * 16, "op": "http.server", "data": {"thread.id": "1"}},
                         "profile": {"profiler_id": f"{1:032x}"}}}


def fill(server):
    for number, (release, profiler, age) in enumerate((("shop@1.0", 1, 900), ("shop@1.0", 1, 800), ("shop@2.0", 2, 300), ("shop@2.0", 2, 200), ("mail@1.3", 3, 100)), 1):
        more = {"profile": profile(release, start=NOW - age), "environment": "production" if profiler < 3 else "test", "server_name": f"host-{profiler}"}
        check_equal(server.send(chunk_envelope(number, release=release, profiler=profiler, **more)).status, 200, "status of a chunk")
    check_equal(server.send(envelope(item("transaction", transaction(NOW - 899)), event_id="b" * 32)).status, 200, "status of a transaction")
    broken = {"version": "2", "profiler_id": "x", "client_sdk": {"name": "sentry.python", "version": "2.40.0"}}
    check_equal(server.send(envelope(item("profile_chunk", broken, platform="python"), sdk={"name": "sentry.python", "version": "2.40.0"})).status, 200, "status")


@contextlib.contextmanager
def opened(*options, fills=True, is_admin=False, **more):
    with chromium.started(**more) as browser, running(OFFBEAT, *options) as server:
        if server.request("GET", "/").status == 404:
            skip("offbeat was built without its page: esbuild is not installed")
        if fills:
            fill(server)
        token = new_token(OFFBEAT, server.data, "all", "admin") if is_admin else server.token
        browser.open(server.page_url.replace(server.token, token))
        browser.wait("!!document.querySelector('nav.server')")  # the page has the token
        browser.server = server
        yield browser


def ready(browser, expression="true"):
    browser.wait("document.querySelector('.line')?.hidden && (" + expression + ")")
    browser.settle()


def press_button(browser, text):
    browser.wait(f"[...document.querySelectorAll('button, a')].some((each) => each.textContent === {json.dumps(text)} && each.offsetParent)")
    browser.run(f"[...document.querySelectorAll('button, a')].find((each) => each.textContent === {json.dumps(text)} && each.offsetParent).click()")


def choose(browser, label, value):
    browser.wait(f"[...document.querySelector('select[aria-label={label}]')?.options || []].some((each) => each.value === {json.dumps(value)})")
    browser.run(f"(() => {{ const select = document.querySelector('select[aria-label={label}]'); select.value = {json.dumps(value)};"
                "select.dispatchEvent(new Event('change')); })()")


def check_quiet(browser):
    browser.check_quiet(f"http://127.0.0.1:{browser.server.port}/", "data:")


def boxes(browser):
    ready(browser, "!!document.querySelector('.view.flame [role=treeitem]')")
    return {name: total for name, (_, total, _) in browser.items().items()}


def top(server, query):
    return server.read(f"top?{query}")


@case
def services_lead_to_the_flame_graph_with_the_numbers_of_the_server():
    with opened() as browser:
        ready(browser, "!!document.querySelector('table.list')")
        check("token" not in browser.run("location.href"), "the token stays in the URL")
        browser.keep(PICTURES, "serve-services")
        press_button(browser, "shop")
        total = boxes(browser)["all"]
        check_equal(total, top(browser.server, "service=shop")["total"], "total")
        browser.keep(PICTURES, "serve-profile")
        choose(browser, "Release", "shop@2.0")
        browser.wait("location.search.includes('release=shop%402.0')")
        found = boxes(browser)
        check_equal(found["all"], top(browser.server, "service=shop&release=shop@2.0")["total"], "total of a release")
        check("highlight" in found and "query" not in found, f"functions of the release: {sorted(found)}")
        link = browser.run("location.href")
        choose(browser, "Compare", "rshop@1.0")
        browser.wait("location.search.includes('base_release')")
        boxes(browser)
        browser.keep(PICTURES, "serve-diff")
        browser.press("2")
        ready(browser, "!!document.querySelector('[data-change]')")
        changes = dict(browser.run("[...document.querySelectorAll('.view.top [data-change]')].map((each) => [each.parentNode.querySelector('.name').title, Number(each.dataset.change)])"))
        wanted = browser.server.read("diff?service=shop&release=shop@2.0&base_release=shop@1.0&normalize=1")["functions"]
        check(changes["highlight"] > 5 and changes["wait_for_row"] < -5, f"changes: {changes}")
        check({each["name"] for each in wanted} >= {"highlight", "wait_for_row"}, "functions of the server's comparison")
        browser.keep(PICTURES, "serve-diff-table")
        browser.open("about:blank")
        browser.open(link)
        check_equal(boxes(browser)["all"], found["all"], "total of the link")
        check_quiet(browser)


@case
def a_comparison_shows_both_sides_with_one_selection():
    with opened() as browser:
        ready(browser)
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=profile&service=shop&release=shop@2.0&base_release=shop@1.0")
        boxes(browser)
        check_equal(browser.run("getComputedStyle(document.querySelectorAll('.side')[1]).display"), "none", "the base without the key")
        browser.press("b")
        browser.wait("location.hash.includes('sides=1')")
        base = "document.querySelector('[aria-label=\"Flame graph of the base\"]')"
        browser.wait(f"!!{base}.querySelector('[role=treeitem]')")
        found = dict(browser.run(f"[...{base}.querySelectorAll('[role=treeitem]')].map((item) => [item.textContent.split(':')[0], Number(item.dataset.total)])"))
        check_equal(found["all"], top(browser.server, "service=shop&release=shop@1.0")["total"], "total of the base")
        check("query" in found and "highlight" not in found, f"functions of the base: {sorted(found)}")
        browser.press("1")
        for name in ("all", "main", "serve"):
            browser.press("ArrowDown")
            browser.wait(f"document.querySelector('[aria-label=\"Flame graph\"] [aria-selected=true]')?.textContent.startsWith('{name}:')")
        browser.wait(f"{base}.querySelector('[aria-selected=true]')?.textContent.startsWith('serve:')")
        browser.run(f"{base}.focus()")
        browser.press("ArrowDown")
        inner = browser.wait(f"((name) => name && name !== 'serve' && name)({base}.querySelector('[aria-selected=true]')?.textContent.split(':')[0])")
        browser.wait(f"document.querySelector('[aria-label=\"Flame graph\"] [aria-selected=true]')?.textContent.split(':')[0] === {json.dumps(inner)}")
        check_equal(browser.faults_of_tab(), [], "controls of both sides")
        browser.keep(PICTURES, "serve-sides")
        browser.press("b")
        browser.wait("!location.hash.includes('sides')")
        check_quiet(browser)


@case
def sessions_and_transactions_have_a_flamechart_with_spans():
    with opened() as browser:
        press_button(browser, "Sessions")
        ready(browser, "document.querySelectorAll('table.list').length === 3")
        browser.keep(PICTURES, "serve-sessions")
        browser.run("[...document.querySelectorAll('table.list')[2].querySelectorAll('a')].find((each) => each.textContent === 'GET /cart <b>').click()")
        ready(browser, "document.querySelectorAll('.view.time [role=treeitem]').length > 3")
        browser.wait("document.querySelectorAll('.span').length >= 3")
        names = browser.run("[...document.querySelectorAll('.span')].map((each) => each.textContent)")
        check(any("SELECT * FROM orders" in name for name in names) and any("GET /cart <b>" in name for name in names), f"spans: {names}")
        browser.keep(PICTURES, "serve-flamechart")
        check_quiet(browser)


@case
def every_service_is_listed_and_found_and_sorted():
    with opened(fills=False) as browser:
        for number in range(503):
            check_equal(browser.server.upload(b"main;work %d\n" % (number + 1), f"service=service-{number:03}").status, 200, "status")
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{browser.server.port}/")
        ready(browser, "document.querySelectorAll('table.list tbody tr').length === 500")
        check_equal(browser.run("document.querySelector('.services [role=status]').textContent"), "503 of 503 services; the first 500 are shown", "count")
        first = "document.querySelector('table.list tbody a').textContent"
        for name in ("service-000", "service-502"):  # the activity does not have the second one
            browser.run("[...document.querySelectorAll('table.list th button')].find((each) => each.textContent.startsWith('Service')).click()")
            check_equal(browser.run(first), name, "the first by name")
        browser.run("(() => { const field = document.querySelector('input[type=search]'); field.value = 'VICE-50 2'; field.dispatchEvent(new Event('input')); })()")
        check_equal(browser.run("document.querySelectorAll('table.list tbody tr').length"), 1, "services that match both words")
        browser.keep(PICTURES, "serve-services-search")
        check_quiet(browser)


@case
def what_is_wrong_goes_away_with_its_cause():
    with opened() as browser:
        ready(browser)
        browser.run("history.pushState(null, '', '?place=profile&service=none'); dispatchEvent(new PopStateEvent('popstate'))")
        browser.wait("!!document.querySelector('.empty') && !document.querySelector('.line').hidden")
        browser.run("history.pushState(null, '', '?place=profile&service=shop'); dispatchEvent(new PopStateEvent('popstate'))")
        boxes(browser)
        check_equal(browser.run("document.querySelectorAll('.empty').length"), 0, "messages above the flame graph")
        browser.press("5")
        browser.wait("document.querySelector('.view.time .empty')?.textContent.includes('Sessions and transactions of this service')")
        check_equal(browser.run("document.querySelector('.view.time .empty a').search"), "?place=sessions&service=shop", "link")


@case
def links_are_links_and_a_new_tab_gets_the_token():
    with opened() as browser:
        ready(browser, "!!document.querySelector('table.list')")
        found = browser.run("[...document.querySelectorAll('nav a, table.list a')].map((each) => [each.textContent, new URLSearchParams(each.search).get('place'), "
                            "new URLSearchParams(each.search).get('service') || ''])")
        check_equal(found, [["Services", "services", ""], ["Regressions", "regressions", ""], ["Sessions", "sessions", ""], ["Ingest", "ingest", ""], ["Administration", "admin", ""], ["shop", "profile", "shop"], ["mail", "profile", "mail"]], "links")
        told = browser.run("new Promise((resolve) => { const other = new BroadcastChannel('offbeat'); other.onmessage = ({ data }) => resolve(data.token); other.postMessage('token?'); })")
        check_equal(told, browser.server.token, "the token that another tab of this origin gets")


@case
def functions_that_grew_lead_to_the_comparison():
    with opened() as browser:
        ready(browser)
        for query in (f"from={NOW - 600}&to={NOW}", f"from={NOW - 600}&to={NOW}&against=release"):
            browser.open(f"http://127.0.0.1:{browser.server.port}/?place=regressions&{query}")
            ready(browser, "!!document.querySelector('.regressions table.list')")
            rows = browser.run("[...document.querySelectorAll('.regressions tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))")
            asked = "service=shop&base_from=1" + f"&base_to={NOW}&release=shop@2.0&base_release=shop@1.0" if "against" in query else f"service=shop&base_from={NOW - 1200}&base_to={NOW - 600}"
            expected = {one["name"] for one in browser.server.read(f"regressions?{asked}&from={NOW - 600}&to={NOW}")["functions"]}
            check("highlight" in expected, f"functions of the server: {expected}")
            check_equal({name for name, service, *_ in rows if service == "shop"}, expected, f"functions, {query}")
            check("mail" in browser.run("document.querySelector('.regressions').innerText"), "a service that nothing can be compared with")
        browser.keep(PICTURES, "serve-regressions")
        press_button(browser, "highlight")
        check("highlight" in boxes(browser) and "base_release=shop%401.0" in browser.run("location.search"), "the comparison")
        check(all("404" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@contextlib.contextmanager
def hook():
    """(URL, bodies) of a server that gets the notifications of alerts."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    bodies = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", bodies
        server.shutdown()


@case
def an_alert_leads_to_the_function_in_one_click():
    rules = ("--alert", "name=share service=shop function=highlight share>5 minutes=60", "--alert", "name=slower service=shop minutes=60 regression")
    with hook() as (url, bodies), opened(*rules, "--alert-webhook", url, "--alert-seconds", "1") as browser:
        wait_until(lambda: len(bodies) == 2, "there are no two alerts")
        link = {body["alert"]: body["url"] for body in bodies}
        browser.open("about:blank")
        browser.open(link["share"])
        boxes(browser)
        browser.wait("document.querySelector('.search input')?.value === 'highlight' && /%/.test(document.querySelector('.search').textContent)")
        browser.keep(PICTURES, "serve-alert")
        browser.open("about:blank")
        browser.open(link["slower"])
        boxes(browser)
        browser.press("2")
        ready(browser, "!!document.querySelector('[data-change]')")
        changes = dict(browser.run("[...document.querySelectorAll('.view.top [data-change]')].map((each) => [each.parentNode.querySelector('.name').title, Number(each.dataset.change)])"))
        check(changes["highlight"] > 5, f"changes: {changes}")


def answer_form(browser, button, **values):
    """Presses BUTTON, a text of it and of its row, fills the dialog in, and presses its own."""
    row, label = button
    browser.run(f"[...document.querySelectorAll('.admin tr, .admin p')].find((each) => each.textContent.includes({json.dumps(row)}))"
                f".querySelectorAll('button').forEach((each) => each.textContent === {json.dumps(label)} && each.click())")
    browser.wait("!!document.querySelector('dialog.form[open]')")
    for name, value in values.items():
        browser.run(f"document.querySelector('dialog.form [aria-label^={json.dumps(name)}]').value = {json.dumps(value)}")
    browser.run("document.querySelector('dialog.form button[type=submit]').click()")
    browser.wait("!document.querySelector('dialog.form')")
    browser.run("new Promise((resolve) => setTimeout(resolve, 100))")
    browser.wait("document.querySelector('.admin .answer').textContent !== ''")


@case
def an_admin_changes_projects_keys_and_data():
    with opened() as browser:
        server = browser.server
        listed = lambda what: json.loads(administer(OFFBEAT, server.data, what, "--json").stdout)  # noqa: E731
        ready(browser)
        browser.open(f"http://127.0.0.1:{server.port}/?place=admin")
        browser.wait("document.getElementById('token') && document.body.innerText.includes('--role admin')")  # the token only reads
        browser.type(new_token(OFFBEAT, server.data, "all", "admin"))
        browser.press("Enter")
        ready(browser, "document.querySelectorAll('.admin table.list').length === 3")
        answer_form(browser, ("Add a project", "Add a project …"), Name="bank <b>")
        check_equal([one["name"] for one in listed("projects")["projects"]][-1], "bank <b>", "the new project")
        check(listed("projects")["projects"][-1]["dsn"] in browser.run("document.querySelector('.admin .answer').textContent"), "its DSN")
        browser.wait("document.querySelector('.admin table').textContent.includes('bank <b>')")
        answer_form(browser, ("bank <b>", "Limits …"), Days="3", Megabytes="50")
        check_equal([listed("projects")["projects"][-1].get(name) for name in ("keep_days", "disk_megabytes")], [3, 50], "limits")
        answer_form(browser, ("Add a key", "Add a key …"), Role="upload", Name="build")
        token = browser.run("document.querySelector('.admin .answer code').textContent")
        check(len(token) == 32 and "build" in [one["name"] for one in listed("keys")["keys"]], f"the new token: {token}")
        browser.keep(PICTURES, "serve-admin")
        answer_form(browser, ("build", "Revoke …"))
        check("build" not in [one["name"] for one in listed("keys")["keys"]], "the key is still there")
        answer_form(browser, ("mail", "Delete …"))
        check_equal(browser.run("document.querySelector('.admin .answer').textContent"), "The data is deleted. Chunks deleted: 1.", "answer")
        check_equal([one["name"] for one in server.read("services")["services"]], ["shop"], "services")
        check(all("403" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@case
def a_file_that_is_dropped_on_the_page_is_shown_and_not_stored():
    with opened() as browser:
        ready(browser)
        path = ROOT / "test/data/trials/server/go_cpu.pb.gz"
        for name, data in (("broken.txt", b"\0\1nothing"), (path.name, path.read_bytes())):
            text = base64.b64encode(data).decode()
            browser.run(f"(() => {{ const bytes = Uint8Array.from(atob('{text}'), (each) => each.charCodeAt(0)), dataTransfer = new DataTransfer();"
                        f"dataTransfer.items.add(new File([bytes], {json.dumps(name)})); document.dispatchEvent(new DragEvent('drop', {{ dataTransfer }})); }})()")
            if name == "broken.txt":
                browser.wait("document.querySelector('.line').textContent.includes('not a profile')")
        total = json.loads(subprocess.run([OFFBEAT, "top", "--json", path], capture_output=True, text=True, check=True).stdout)["total"]
        check_equal(boxes(browser)["all"], total, "total")
        browser.keep(PICTURES, "serve-file")
        check_equal({one["name"] for one in browser.server.read("services")["services"]}, {"shop", "mail"}, "services")
        press_button(browser, "Services")
        ready(browser, "!!document.querySelector('.services table.list')")
        check(all("400" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@case
def an_answer_that_lacks_a_shard_is_marked():
    with opened() as browser:
        ready(browser)
        browser.run("(() => { const real = window.fetch; window.fetch = async (...given) => { const answer = await real(...given), headers = new Headers(answer.headers);"
                    "headers.set('X-Offbeat-Incomplete', 'shard 2'); return new Response(answer.body, { status: answer.status, headers }); }; })()")
        press_button(browser, "Sessions")
        browser.wait("document.querySelector('.line').textContent === 'Data is missing: of the cluster, shard 2 did not answer.' && !document.querySelector('.line').hidden")
        check_quiet(browser)


@case
def transactions_of_a_name_are_counted_and_added_up():
    with opened() as browser:
        for number in range(1, 5):
            one = transaction(NOW - 895 + number) | {"event_id": f"{number:032x}", "timestamp": NOW - 895 + number + number / 10, "spans": []}
            one["contexts"] = {**one["contexts"], "trace": {**one["contexts"]["trace"], "span_id": f"{number:016x}f"[1:]}}
            check_equal(browser.server.send(envelope(item("transaction", one), event_id=f"{number:032x}")).status, 200, "status")
        press_button(browser, "Sessions")
        ready(browser, "document.querySelectorAll('table.list').length === 3")
        row = browser.run("[...document.querySelector('table.list tbody tr').children].map((each) => each.textContent.replace(/\\u202f/g, ' '))")
        check_equal(row, ["GET /cart <b>", "shop", "5", "300.00 ms", "2.500 s", "3.500 s"], "name, service, count, p50, p95 and sum")
        browser.keep(PICTURES, "serve-transactions")
        browser.run("document.querySelector('table.list tbody a').click()")
        name = "service=shop&transaction=GET%20%2Fcart%20%3Cb%3E"
        check_equal(boxes(browser)["all"], top(browser.server, name)["total"], "total of all of them")
        browser.wait("[...document.querySelectorAll('select[aria-label=Transaction] option')].length === 2")
        check_equal(browser.run("document.querySelectorAll('#functions option').length > 5"), True, "functions that are suggested")
        check_quiet(browser)


@case
def a_function_is_merged_collapsed_dropped_or_focused_until_back():
    with opened() as browser:
        ready(browser)
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=profile&service=shop")
        before = boxes(browser)
        browser.press("m")
        browser.wait("document.querySelector('.status').textContent.startsWith('select a function first')")
        for key, parameter, gone, there in (("m", "hide", {"render"}, {"template", "serve"}), ("k", "prune_from", {"template", "highlight"}, {"render", "serve"}),
                                            ("x", "ignore", {"render", "template"}, {"serve", "parse"}), ("f", "show_from", {"serve", "main", "idle"}, {"render", "template"})):
            browser.press("1")
            for step, name in (("ArrowDown", "all"), ("ArrowDown", "main"), ("ArrowDown", "serve"), ("ArrowDown", "read_request"), ("ArrowRight", "render")):
                browser.press(step)
                browser.wait(f"document.querySelector('.view.flame [aria-selected=true]')?.textContent.startsWith('{name}:')")
            browser.press(key)
            browser.wait(f"new URLSearchParams(location.search).get('{parameter}') === '^render$'")
            after = boxes(browser)
            check(not gone & set(after) and there <= set(after), f"{parameter}: {sorted(after)}")
            check_equal(after["all"], top(browser.server, f"service=shop&{parameter}=^render$")["total"], f"total of {parameter}")
            browser.run("history.back()")
            browser.wait(f"!new URLSearchParams(location.search).has('{parameter}')")
            check_equal(boxes(browser), before, f"after the way back from {parameter}")
        check_quiet(browser)


@case
def two_services_are_compared():
    with opened() as browser:
        ready(browser)
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=profile&service=shop")
        boxes(browser)
        choose(browser, "Compare", "smail")
        browser.wait("location.search.includes('base_service=mail')")
        check_equal(boxes(browser)["all"], top(browser.server, "service=shop")["total"], "total")
        browser.press("2")
        ready(browser, "!!document.querySelector('[data-change]')")
        names = browser.run("[...document.querySelectorAll('.view.top .name')].map((each) => each.title)")
        check({"send", "parse"} <= set(names), f"functions of both services: {names}")
        check_quiet(browser)


@case
def a_service_with_several_kinds_of_profiles_has_a_choice_of_type():
    trials = pathlib.Path(__file__).resolve().parents[1] / "data/trials/server"
    with opened(fills=False) as browser:
        for name in ("cpu", "heap", "goroutine", "heap"):
            check_equal(browser.server.upload((trials / f"go_{name}.pb.gz").read_bytes(), "service=go").status, 200, name)
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=profile&service=go&type=nothing")
        check_equal(boxes(browser)["all"], 3_260_000_000, "CPU time, also with a type that is not there")
        choose(browser, "Type", "inuse_space")
        browser.wait("document.querySelector('.rule')?.textContent === 'average of 2 profiles of 1 process'")
        check_equal(boxes(browser)["all"], 8_396_811, "memory in use")
        browser.requests.clear()
        browser.run("""((select) => ["inuse_space", "goroutine"].forEach((type) => { select.value = type; select.dispatchEvent(new Event('change')); }))
          (document.querySelector('select[aria-label=Type]'))""")
        browser.wait("document.querySelector('.rule')?.textContent === 'average of 1 profile of 1 process'")
        check_equal(boxes(browser)["all"], 6, "goroutines, chosen before the type in between was there")
        pages = [url.split("?")[1] for url in browser.requests if "/page?" in url]
        check_equal(pages, ["service=go&type=goroutine"], "profiles that the page asks for")
        browser.keep(PICTURES, "serve-types")
        check_quiet(browser)


@case
def the_first_page_shows_the_last_hour():
    with opened(fills=False) as browser:
        check_equal(browser.server.send(chunk_envelope(1, start=NOW - 40 * 86400, release="old@1")).status, 200, "an old chunk")
        browser.open("about:blank")
        browser.open(browser.server.page_url)
        ready(browser, "document.querySelector('h1')?.textContent === 'Nothing arrived in the last hour'")
        press_button(browser, "Show all of the time")
        ready(browser, "document.querySelector('table.list')?.textContent.includes('old')")
        check_equal(browser.server.send(chunk_envelope(2, release="new@1")).status, 200, "a new chunk")
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{browser.server.port}/")
        ready(browser, "document.querySelector('table.list')?.textContent.includes('new')")
        check(not browser.run("document.querySelector('table.list').textContent.includes('old')"), "the old service is listed")


@case
def ingest_names_what_was_rejected_and_how_to_send():
    with opened() as browser:
        press_button(browser, "Ingest")
        ready(browser, "document.querySelectorAll('table.list').length === 3")
        text = browser.run("document.querySelector('.ingest').innerText")
        rejected = browser.server.read("rejected")["rejected"][0]
        for part in (rejected["reason"], rejected["place"], "accepted", browser.server.dsn):
            check(part in text, f"{part!r} is not in {text}")
        browser.keep(PICTURES, "serve-ingest")
        check_quiet(browser)


PLACES = [("services", "?place=services"), ("profile", "?place=profile&service=shop"), ("diff", "?place=profile&service=shop&release=shop@2.0&base_release=shop@1.0"),
          ("session", f"?place=profile&profiler={1:032x}"), ("sessions", "?place=sessions"),
          ("regressions", f"?place=regressions&from={NOW - 600}&to={NOW}"), ("admin", "?place=admin"), ("ingest", "?place=ingest"), ("nothing", "?place=profile&service=none")]
# test/cli/page.py walks through these views, but without axe.
VIEWS = [("table", "?place=profile&service=shop#v=1&view=top"), ("sandwich", "?place=profile&service=shop#v=1&view=sandwich&function=0"),
         ("tree", "?place=profile&service=shop#v=1&view=tree")]


def each_place(browser, places=tuple(PLACES)):
    for name, query in places:
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{browser.server.port}/{query}")
        browser.wait("document.querySelector('.line') && document.querySelector('.line').textContent !== 'Asking the server …'")
        browser.run("new Promise((resolve) => setTimeout(resolve, 250))")
        yield name


@case
def every_place_fits_360_and_2560_pixels_and_a_zoom_of_200_percent():
    with opened(is_admin=True) as browser:
        ready(browser)
        for name in each_place(browser):
            for width, height, scale in ((2560, 1400, 1), (640, 400, 2), (360, 740, 1)):
                browser.resize(width, height, scale)
                browser.run("new Promise((resolve) => setTimeout(resolve, 120))")
                check_equal(browser.run("document.documentElement.scrollWidth"), width, f"width of {name}")
                browser.keep(PICTURES, f"serve-{name}-{width}")
        check(all("404" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@case
def axe_finds_nothing_serious_in_any_place_and_theme():
    if not chromium.find_axe():
        skip("axe-core is not installed: ./dev setup all")
    with opened(is_admin=True) as browser:
        ready(browser)
        for name in each_place(browser, PLACES + VIEWS):
            for theme in ("light", "dark"):
                browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
                check_equal(browser.faults_of_access(), [], f"faults of {name}, {theme}")
                browser.keep(PICTURES, f"serve-{name}-{theme}")
        browser.run("document.body.append(document.createElement('input'))")
        check("label" in "".join(browser.faults_of_access()), "axe finds no field without a label")


@case
def tab_reaches_every_control_of_every_place_and_arrows_every_span():
    with opened(is_admin=True) as browser:
        ready(browser)
        for name in each_place(browser):
            check_equal(browser.faults_of_tab(), [], f"controls of {name}")
            check(len(browser.controls()) > 3, f"{name}: {browser.controls()}")
            if name == "session":
                spans = browser.run("[...document.querySelectorAll('.span')].map((each) => each.title)")
                check(len(spans) > 3, f"spans: {spans}")
                browser.run("document.querySelector('.span[tabindex=\"0\"]').focus()")
                seen = [browser.focused()]
                for _ in spans[1:]:
                    browser.press("ArrowRight")
                    seen.append(browser.focused())
                check_equal(seen, spans, "spans that the arrows reach")
                browser.press("Enter")
                browser.wait("location.hash.includes('window=')")
                check_equal(browser.focused(), seen[-1], "focus after the zoom")
        check(all("404" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@case
def the_keyboard_alone_leads_to_the_function():
    with opened() as browser:
        ready(browser, "!!document.querySelector('table.list')")
        focused = "document.activeElement.textContent"
        for _ in range(30):
            browser.press("Tab")
            if browser.run(focused) == "shop":
                break
        check_equal(browser.run(focused), "shop", "focus")
        browser.press("Enter")
        boxes(browser)
        browser.press("1")
        for name in ("all", "main", "serve"):
            browser.press("ArrowDown")
            browser.wait(f"document.querySelector('.view.flame [aria-selected=true]')?.textContent.startsWith('{name}:')")
        browser.press("g")
        browser.wait("document.querySelector('.view.sandwich h2').textContent.startsWith('serve')")
        browser.press("e")
        browser.wait("document.querySelector('dialog[open]')?.textContent.includes('go tool pprof')")
        browser.keep(PICTURES, "serve-export")
        browser.press("Escape")
        browser.wait("!document.querySelector('dialog[open]')")
        browser.press("?")
        browser.wait("document.querySelector('dialog[open]')?.textContent.includes('regular expression')")
        check_quiet(browser)


@case
def exports_are_the_files_of_the_server():
    with tempfile.TemporaryDirectory() as folder, opened() as browser:
        browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        press_button(browser, "shop")
        boxes(browser)
        for title, ending in (("pprof", "pb.gz"), ("speedscope", "speedscope.json"), ("Firefox Profiler", "firefox.json"), ("collapsed stacks", "collapsed"),
                              ("PNG", "png"), ("SVG", "svg")):
            browser.press("e")
            press_button(browser, title)
            path, end = pathlib.Path(folder, f"shop.{ending}"), time.monotonic() + chromium.WAIT_SECONDS
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.05)
            check(path.exists(), f"no {path.name} among {list(pathlib.Path(folder).iterdir())}")
            browser.press("Escape")
        done = subprocess.run([OFFBEAT, "top", "--json", f"{folder}/shop.pb.gz"], capture_output=True, text=True, check=True)
        check_equal(json.loads(done.stdout)["total"], top(browser.server, "service=shop")["total"], "total of the file")
        check_equal(len(json.loads(pathlib.Path(folder, "shop.speedscope.json").read_text())["shared"]["frames"]) > 8, True, "frames")
        drawing = pathlib.Path(folder, "shop.svg").read_bytes()
        svg.check_harmless(drawing)
        check("highlight" in svg.texts(drawing, "text"), "a label of the SVG")
        check_equal(pathlib.Path(folder, "shop.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n", "a PNG")
        check_quiet(browser)


@case
def names_that_differ_at_their_ends_can_be_told_apart():
    names = [f"std::vector<std::pair<{'std::basic_string<char>, ' * 8}{key}>>::insert(iterator)" for key in ("int", "long")]
    with tempfile.TemporaryDirectory() as folder, opened(fills=False) as browser:
        check_equal(browser.server.upload("".join(f"main;{name} 50\n" for name in names).encode(), "service=long").status, 200, "status")
        browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=profile&service=long")
        boxes(browser)
        browser.press("e")
        press_button(browser, "SVG")
        path = pathlib.Path(folder, "long.svg")
        wait_until(path.exists, "there is no SVG")
        labels = {text for text in svg.texts(path.read_bytes(), "text") if text.startswith("std::vector")}
        check(len(labels) == 2 and all("…" in label and label.endswith("insert(iterator)") for label in labels), f"labels: {labels}")
        browser.press("Escape")
        browser.press("3")
        browser.wait("document.querySelector('.graphs h2')?.textContent.startsWith('Choose')")
        sides = browser.run("(() => { const box = document.querySelector('.graphs').getBoundingClientRect(); return [box.right, document.documentElement.clientWidth]; })()")
        check_equal(sides[0], sides[1], "right end of the part without a function")


@case
def the_own_code_is_warm_and_libraries_are_cool_in_every_language():
    own = {"main.handle": "/app/cart/main.go", "github.com/acme/shop/cart.Total": "/app/cart/cart.go", "com.acme.shop.Cart.total": "com.acme.shop.Cart",
           "shop.checkout": "/srv/shop/cart.py", "shop::total": "/build/src/cart.rs"}
    others = {"runtime.mallocgc": "/usr/local/go/src/runtime/malloc.go", "net/http.serve": "net/http/server.go", "github.com/lib/pq.Open": "/root/go/pkg/mod/github.com/lib/pq@v1.10.9/conn.go",
              "java.util.TimSort.sort": "java.util.TimSort", "serde::ser": "/root/.cargo/registry/src/index.crates.io-6f17/serde-1.0/src/lib.rs", "core::fmt": "/rustc/90b35a/library/core/src/fmt.rs",
              "json.loads": "/usr/lib/python3.11/json/__init__.py", "System.String.Concat": ""}
    frames = [{"name": name, "file": file} for name, file in (own | others).items()]
    file = {"$schema": "https://www.speedscope.app/file-format-schema.json", "shared": {"frames": frames},
            "profiles": [{"type": "sampled", "name": "x", "unit": "none", "startValue": 0, "endValue": len(frames), "samples": [[i] for i in range(len(frames))], "weights": [1] * len(frames)}]}
    with tempfile.TemporaryDirectory() as folder, opened(fills=False) as browser:
        check_equal(browser.server.upload(json.dumps(file).encode(), "service=colours").status, 200, "status")
        browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=folder)
        browser.open("about:blank")
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=profile&service=colours")
        boxes(browser)
        browser.press("e")
        press_button(browser, "SVG")
        path = pathlib.Path(folder, "colours.svg")
        wait_until(path.exists, "there is no SVG")
        hues = {name: int(hue) for name, hue in re.findall(r'<title>([^\n<]+)[^<]*</title><rect [^>]*fill="hsl\((\d+) ', path.read_text())}
        check_equal({name for name, hue in hues.items() if name in own | others and (hue <= 70 or hue >= 340)}, set(own), f"functions with warm colours of {hues}")
        check(set(others) <= set(hues), f"boxes: {hues}")
        check(hues["com.acme.shop.Cart.total"] != hues["github.com/acme/shop/cart.Total"] != hues["main.handle"], "packages that have the same colour")


@case
def a_narrow_screen_shows_every_column_of_every_list():
    with opened(is_admin=True) as browser:
        browser.resize(390, 844)
        ready(browser)
        for name in each_place(browser, [place for place in PLACES if place[0] in ("sessions", "regressions", "admin", "ingest")]):
            hidden = browser.run("[...document.querySelectorAll('table.list td')].filter((each) => each.textContent && each.getBoundingClientRect().right > innerWidth).map((each) => each.textContent)")
            check_equal(hidden, [], f"cells beside the screen, {name}")
            check(browser.run("document.querySelectorAll('table.list td').length") > 4, f"no list in {name}")
        check(all("404" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@case
def an_empty_store_says_how_to_send():
    with opened(fills=False) as browser:
        ready(browser, "!!document.querySelector('.snippets')")
        text = browser.run("document.body.innerText")
        check("No profiles have arrived yet" in text and browser.server.dsn in text, text)
        browser.keep(PICTURES, "serve-empty")
        fill(browser.server)
        press_button(browser, "Look again")
        ready(browser, "!!document.querySelector('table.list')")
        check_quiet(browser)


@case
def without_a_token_the_page_asks_for_one():
    with opened() as browser:
        ready(browser)
        browser.run("sessionStorage.clear()")
        browser.open("about:blank")
        browser.requests.clear()
        browser.open(f"http://127.0.0.1:{browser.server.port}/?place=ingest")
        browser.wait("!!document.getElementById('token')")
        check_equal([url for url in browser.requests if "/api/" in url], [], "questions without a token")
        browser.keep(PICTURES, "serve-token")
        browser.type("0" * 32)
        browser.press("Enter")
        browser.wait("document.querySelector('.line').textContent.includes('token')")
        browser.type(browser.server.token)
        browser.press("Enter")
        ready(browser, "!!document.querySelector('.ingest')")
        check(all("403" in problem for problem in browser.problems), f"complaints: {browser.problems}")


@case
def files_of_the_page_are_compressed_and_kept_and_the_policy_is_strict():
    with running(OFFBEAT) as server:
        page = server.request("GET", "/?place=ingest")
        if page.status == 404:
            skip("offbeat was built without its page: esbuild is not installed")
        policy = page.headers["Content-Security-Policy"]
        check("default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy, policy)
        check_equal((page.headers["Content-Encoding"], page.headers["Cache-Control"]), ("gzip", "no-store"), "headers of the page")
        names = [part.split('"')[0] for part in gzip.decompress(page.body).decode().split('"page-')[1:]]
        check_equal(len(names), 2, "files of the page")
        for name in names:
            answer = server.request("GET", f"/page-{name}")
            check_equal((answer.status, "immutable" in answer.headers["Cache-Control"]), (200, True), name)
        check_equal([server.request("GET", path).status for path in ("/page-0.js", "/index.html", "/api/1/page?service=x")], [404, 404, 401], "other paths")
        check_equal(server.request("POST", "/").status, 405, "POST")


main()
