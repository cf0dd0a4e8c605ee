"""Telemetry of a gateway, read by OpenTelemetry's own packages.

Usage: check.py PATH-OF-TIDEGATE FOLDER
"""

import http.server
import json
import pathlib
import queue
import re
import subprocess
import sys
import threading
import urllib.request
from concurrent import futures

import grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb2
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as metrics_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_grpc
from opentelemetry.proto.trace.v1.trace_pb2 import Span

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
MCP_CALLER = "00f067aa0ba902b8"
CONFIG = """\
listen: 127.0.0.1:0
admin: {{ listen: "127.0.0.1:0" }}
providers: {{ a: {{ api: fake }}, b: {{ api: fake }} }}
routes: {{ r: {{ tiers: [[a/status-500], [b/ok]] }} }}
mcp: {{ servers: {{ tides: {{ fake: steady }}, harbour: {{ fake: steady }} }} }}
telemetry: {{ otlp: "{url}" }}
"""


class Received:
    """What a collector was sent."""

    def __init__(self):
        self.spans, self.metrics, self.server = [], {}, None

    def traces(self, request):
        for resource in request.resource_spans:
            told = {it.key: it.value.string_value for it in resource.resource.attributes}
            assert told["service.name"] == "tidegate", told
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def figures(self, request):
        for resource in request.resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics.update({it.name: it for it in scope.metrics})


def grpc_collector(received):
    class Traces(trace_grpc.TraceServiceServicer):
        def Export(self, request, context):
            received.traces(request)
            return trace_pb2.ExportTraceServiceResponse()

    class Metrics(metrics_grpc.MetricsServiceServicer):
        def Export(self, request, context):
            received.figures(request)
            return metrics_pb2.ExportMetricsServiceResponse()

    server = grpc.server(futures.ThreadPoolExecutor(max_workers=2))
    trace_grpc.add_TraceServiceServicer_to_server(Traces(), server)
    metrics_grpc.add_MetricsServiceServicer_to_server(Metrics(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    # A server that nobody refers to is collected, and stops.
    received.server = server
    return f"http://127.0.0.1:{port}"


def http_collector(received):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.headers["content-type"] == "application/x-protobuf"
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path == "/otlp/v1/traces":
                received.traces(trace_pb2.ExportTraceServiceRequest.FromString(body))
            elif self.path == "/otlp/v1/metrics":
                received.figures(metrics_pb2.ExportMetricsServiceRequest.FromString(body))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/otlp"


def serve(binary, folder, url):
    """Starts a gateway; its process and its addresses."""
    config = folder / "otlp.yaml"
    config.write_text(CONFIG.format(url=url))
    command = [binary, "serve", "--config", str(config)]
    gateway = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines = queue.Queue()
    threading.Thread(target=lambda: [lines.put(it) for it in gateway.stderr], daemon=True).start()
    said = ""
    while "\nserving" not in said:
        said += lines.get(timeout=60)
    address = re.search(r"api +http://([^/]+)/v1", said).group(1)
    return gateway, address


def post(address, path, body, headers):
    request = urllib.request.Request(f"http://{address}{path}", json.dumps(body).encode())
    for name, value in {"content-type": "application/json", **headers}.items():
        request.add_header(name, value)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers, answer.read().decode()


def use(address):
    """A request that fails over, and a call of a tool."""
    body = {"model": "r", "messages": [{"role": "user", "content": "canary-prompt"}]}
    post(address, "/v1/chat/completions", body, {"traceparent": f"00-{TRACE}-{CALLER}-01"})
    headers = {"accept": "application/json, text/event-stream"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "check", "version": "1"}}
    opened, _ = post(address, "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize",
                                       "params": hello}, headers)
    headers["mcp-session-id"] = opened["mcp-session-id"]
    call = {"name": "tides_next_tide", "arguments": {"place": "canary-place"},
            "_meta": {"traceparent": f"00-{TRACE}-{MCP_CALLER}-01"}}
    post(address, "/mcp", {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
         headers)


def check(received):
    request = [it for it in received.spans if it.parent_span_id.hex() == CALLER]
    assert len(request) == 1, received.spans
    request = request[0]
    assert request.kind == Span.SPAN_KIND_SERVER and request.trace_id.hex() == TRACE
    attempts = [it for it in received.spans if it.parent_span_id == request.span_id]
    told = [{it.key: it.value for it in span.attributes} for span in attempts]
    assert [it["tidegate.target"].string_value for it in told] == ["a/status-500", "b/ok"], told
    assert [it["http.response.status_code"].int_value for it in told] == [500, 200], told
    assert all(it.kind == Span.SPAN_KIND_CLIENT for it in attempts)
    assert [it.status.code for it in attempts] == [2, 0], attempts
    assert all(it.start_time_unix_nano <= it.end_time_unix_nano for it in received.spans)
    call = [it for it in received.spans if it.name == "tools/call tides_next_tide"]
    assert len(call) == 2 and call[1].parent_span_id == call[0].span_id, call
    assert call[0].parent_span_id.hex() == MCP_CALLER, call
    assert {it.trace_id.hex() for it in received.spans} == {TRACE}, received.spans
    text = b"".join(it.SerializeToString() for it in received.spans)
    assert b"canary" not in text, "a prompt or an argument was exported"
    requests = received.metrics["tidegate_requests_total"].sum
    assert requests.is_monotonic and requests.aggregation_temporality == 2, requests
    assert sum(it.as_double for it in requests.data_points) == 1, requests
    seconds = received.metrics["tidegate_request_seconds"].histogram.data_points
    counted = [it for it in seconds if it.count]
    assert len(counted) == 1 and sum(counted[0].bucket_counts) == 1, seconds
    assert len(counted[0].bucket_counts) == len(counted[0].explicit_bounds) + 1


def main():
    binary, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, collector in [("grpc", grpc_collector), ("http", http_collector)]:
        received = Received()
        gateway, address = serve(binary, folder, collector(received))
        try:
            use(address)
            gateway.terminate()
            gateway.wait(timeout=60)
        finally:
            gateway.kill()
        check(received)
        print(f"{name}: {len(received.spans)} spans and {len(received.metrics)} metrics, ok")


main()
