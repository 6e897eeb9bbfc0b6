# Varnish asks robotsd about every request, cached ones included (Varnish 6.0 or later, with std).
#
#   127.0.0.1:8080   Varnish, for clients: varnishd -a 127.0.0.1:8080 -f varnish.vcl
#   127.0.0.1:9180   robotsd, a listener of kind = "decision"
#   127.0.0.1:3000   the site
#
# A request is passed to robotsd first, and begins anew with its answer. Its body has to be kept for that and goes along, which robotsd takes
# up to 16 KB: a POST with a larger one, or one of unknown length, goes on without a question. If robotsd is down or does not answer within
# 250 ms, requests go on as if it were not there; once the probe has noticed, after two seconds, it is not even asked. /robots.txt then is the
# site's own.

vcl 4.1;

import std;

backend robotsd {
    .host = "127.0.0.1";
    .port = "9180";
    .connect_timeout = 250ms;
    .first_byte_timeout = 250ms;
    .between_bytes_timeout = 250ms;
    .probe = {
        .url = "/-/health";
        .interval = 1s;
        .timeout = 250ms;
        .window = 2;
        .threshold = 1;
        .initial = 1;
    }
}

backend site {
    .host = "127.0.0.1";
    .port = "3000";
}

sub vcl_recv {
    if (req.restarts == 0) {
        # The fields that only robotsd may write, in every spelling.
        unset req.http.Robots-Verdict;
        unset req.http.Robots_Verdict;
        unset req.http.X-Original-URI;
        unset req.http.X_Original_URI;
        unset req.http.X-Original-URL;
        unset req.http.X_Original_URL;
        unset req.http.X-Original-Method;
        unset req.http.X_Original_Method;
        unset req.http.X-Robotsd;
        # robotsd would take it over from a trusted proxy, and a client could choose it.
        unset req.http.X-Request-ID;

        # On HTTP/2 a body of unknown length shows by nothing but the method.
        if (req.http.Transfer-Encoding || std.integer(req.http.Content-Length, 0) > 16384 ||
            (req.proto ~ "HTTP/2" && !req.http.Content-Length && req.method !~ "^(GET|HEAD|OPTIONS|DELETE|TRACE)$")) {
            # Neither has a body, so this would be a way round the rules.
            if (req.method == "GET" || req.method == "HEAD") {
                return (synth(413));
            }
            set req.backend_hint = site;
            return (pass);
        }
        if (req.http.Content-Length) {
            std.cache_req_body(16KB);
        }

        set req.backend_hint = robotsd;
        if (req.url ~ "^/robots\.txt(\?|$)") {
            # Served by robotsd as it enforces it, also to crawlers that are refused everything else.
            set req.http.X-Robotsd = "file";
        } else {
            set req.http.X-Robotsd = "question";
            # The target as it came, not decoded.
            set req.http.X-Original-URI = req.url;
            set req.http.X-Original-Method = req.method;
            set req.http.X-Real-IP = client.ip;
            # "site" is the name of the [[site]]: its rules hold, whatever Host a client writes.
            set req.url = "/-/site/site/auth/varnish";
        }
        return (pass);
    }
    set req.backend_hint = site;
    # An application may answer otherwise by the verdict, and such an answer is not for others.
    if (req.http.Robots-Verdict) {
        return (pass);
    }
}

sub vcl_backend_fetch {
    unset bereq.http.X-Robotsd;
}

sub vcl_deliver {
    if (req.http.X-Robotsd == "question") {
        # 4xx is a refusal; or a question that robotsd cannot take, which must not be a way round the rules.
        if (resp.status < 400 || resp.status >= 500) {
            if (resp.status == 200 && resp.http.Robots-Verdict) {
                set req.http.Robots-Verdict = resp.http.Robots-Verdict;
            }
            set req.url = req.http.X-Original-URI;
            unset req.http.X-Original-URI;
            unset req.http.X-Original-Method;
            unset req.http.X-Real-IP;
            unset req.http.X-Robotsd;
            return (restart);
        }
    } else if (req.http.X-Robotsd == "file" && resp.status != 200 && resp.status != 304) {
        # Not a host of robotsd's, or robotsd is not there: the site's own.
        unset req.http.X-Robotsd;
        return (restart);
    }
}
