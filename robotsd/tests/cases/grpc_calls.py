"""gRPC calls with grpcio, for the test `grpc`: `serve` prints its port, `call PORT` prints the result of each call, as JSON.

`refused PORT AGENT` prints the result of one call with this user agent."""

import json
import queue
import sys
import threading
import time
from concurrent import futures

import grpc

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
]
LARGE = 8 << 20


def serve():
    ended = []
    stopping = threading.Event()

    def echo(message, context):
        given = dict(context.invocation_metadata())
        context.send_initial_metadata((("x-initial", given.get("x-given", "")),))
        context.set_trailing_metadata((("x-trailing", "kept"), ("x-binary-bin", b"\x00\xff")))
        return message

    def fail(_, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "no such thing: 100 % \u00e9")

    def hang(_, context):
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(30)
        ended.append("hang")
        return b""

    def join(messages, _):
        return b",".join(messages)

    def count(message, context):
        for number in range(int(message)):
            yield b"%d" % number
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "that is all")

    def endless(_, context):
        gone = threading.Event()
        context.add_callback(lambda: (ended.append("endless"), gone.set()))
        while not gone.wait(0.01):
            yield b"tick"

    def talk(messages, _):
        for message in messages:
            yield b"you said " + message

    def slow(_, __):
        # This call is in progress when the server sends GOAWAY, and must end normally.
        yield b"first"
        stopping.wait(30)
        time.sleep(0.5)
        yield b"last"

    def ended_calls(_, __):
        return json.dumps(sorted(ended)).encode()

    def stop(_, __):
        stopping.set()
        threading.Thread(target=lambda: server.stop(20), daemon=True).start()
        return b""

    handlers = {
        "Echo": grpc.unary_unary_rpc_method_handler(echo),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "Hang": grpc.unary_unary_rpc_method_handler(hang),
        "Join": grpc.stream_unary_rpc_method_handler(join),
        "Count": grpc.unary_stream_rpc_method_handler(count),
        "Endless": grpc.unary_stream_rpc_method_handler(endless),
        "Talk": grpc.stream_stream_rpc_method_handler(talk),
        "Slow": grpc.unary_stream_rpc_method_handler(slow),
        "Ended": grpc.unary_unary_rpc_method_handler(ended_calls),
        "Stop": grpc.unary_unary_rpc_method_handler(stop),
    }
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=16), options=OPTIONS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Calls", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()


def outcome(call):
    try:
        return call()
    except grpc.RpcError as error:
        return [error.code().name, error.details()]


def until(condition):
    for _ in range(1000):
        if condition():
            return True
        time.sleep(0.01)
    return False


def call(port):
    found = {}
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
    unary = lambda name: channel.unary_unary(f"/test.Calls/{name}")
    server_streaming = lambda name: channel.unary_stream(f"/test.Calls/{name}")

    def echo():
        answer, info = unary("Echo").with_call(b"hi", metadata=(("x-given", "1"), ("x-given-bin", b"\x00")), timeout=20)
        initial, trailing = dict(info.initial_metadata()), dict(info.trailing_metadata())
        kept = [initial["x-initial"], trailing["x-trailing"], trailing["x-binary-bin"].hex()]
        return [answer.decode(), info.code().name, *kept]

    found["unary"] = outcome(echo)
    found["status"] = outcome(lambda: unary("Fail")(b"", timeout=20))
    found["unimplemented"] = outcome(lambda: unary("None")(b"", timeout=20))[0]
    large = bytes(range(256)) * (LARGE // 256)
    found["large"] = outcome(lambda: unary("Echo")(large, timeout=60) == large)
    found["empty"] = outcome(lambda: unary("Echo")(b"", timeout=20).decode())
    found["deadline"] = outcome(lambda: unary("Hang")(b"", timeout=0.5))[0]
    join = channel.stream_unary("/test.Calls/Join")
    found["client streaming"] = outcome(lambda: join(iter([b"a", b"b", b"c"]), timeout=20).decode())

    received = []
    ended = outcome(lambda: [received.append(message.decode()) for message in server_streaming("Count")(b"3", timeout=20)])
    found["server streaming"] = [received, ended]

    said = queue.Queue()
    talk = channel.stream_stream("/test.Calls/Talk")(iter(said.get, None), timeout=20)
    heard = []
    for message in [b"one", b"two", b"three"]:
        # Sends each message after the answer to the previous message has arrived.
        said.put(message)
        heard.append(next(talk).decode())
    said.put(None)
    found["both streaming"] = [heard, [message.decode() for message in talk], talk.code().name]

    endless = server_streaming("Endless")(b"", timeout=20)
    found["before cancelling"] = [next(endless).decode() for _ in range(2)]
    endless.cancel()
    found["cancelled"] = outcome(lambda: [message for message in endless])[0]
    seen = lambda: json.loads(unary("Ended")(b"", timeout=20))
    found["the server saw both end"] = until(lambda: seen() == ["endless", "hang"])

    slow = server_streaming("Slow")(b"", timeout=20)
    first = next(slow).decode()
    unary("Stop")(b"", timeout=20)
    found["goodbye in between"] = [first, outcome(lambda: [message.decode() for message in slow]), slow.code().name]
    # The server no longer listens.
    gone = lambda: outcome(lambda: unary("Echo")(b"", timeout=20))
    found["gone"] = until(lambda: gone()[:1] == ["UNAVAILABLE"])
    print(json.dumps(found))


def refused(port, agent):
    options = [*OPTIONS, ("grpc.primary_user_agent", agent)]
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=options)
    try:
        channel.unary_unary("/test.Calls/Echo")(b"hi", timeout=20)
        print(json.dumps(["OK", "", {}]))
    except grpc.RpcError as error:
        print(json.dumps([error.code().name, error.details(), dict(error.trailing_metadata() or error.initial_metadata())]))


if sys.argv[1] == "serve":
    serve()
elif sys.argv[1] == "refused":
    refused(int(sys.argv[2]), sys.argv[3])
else:
    call(int(sys.argv[2]))
