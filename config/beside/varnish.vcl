# Varnish asks robotsd about every request, even if the response is cached (Varnish 6.0 or later, with std).
#
#   127.0.0.1:8080   Varnish, for clients: varnishd -a 127.0.0.1:8080 -f varnish.vcl
#   127.0.0.1:9180   robotsd, a listener of kind = "decision"
#   127.0.0.1:3000   the site
#
# Varnish first passes a request to robotsd, and restarts the request when it has robotsd's answer.
# Varnish therefore has to keep the request's body, and also sends it to robotsd, which accepts up
# to 16 KB. Varnish forwards a POST with a larger body, or with a body of unknown length, without
# asking robotsd. If robotsd is down or does not answer within 250 ms, requests are forwarded unchecked.
# After two seconds, the probe detects this, and Varnish stops asking robotsd. The site then
# serves its own /robots.txt.

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

# The backend of the client's request. If there are several backends, select one by req.http.host here.
sub select_site {
    set req.backend_hint = site;
}

sub vcl_recv {
    if (req.restarts == 0) {
        # Only robotsd may set these fields. They are removed from clients' requests, with hyphens or underscores.
        unset req.http.Robots-Verdict;
        unset req.http.Robots_Verdict;
        unset req.http.X-Original-URI;
        unset req.http.X_Original_URI;
        unset req.http.X-Original-URL;
        unset req.http.X_Original_URL;
        unset req.http.X-Original-Method;
        unset req.http.X_Original_Method;
        unset req.http.X-Robotsd;
        # Removes the client's own ID, because robotsd would trust it as if the proxy had set it.
        unset req.http.X-Request-ID;
    }
    # robotsd is asked about a page, but not about the fragments that Varnish inserts into it (ESI).
    if (req.restarts == 0 && req.esi_level == 0) {
        # In HTTP/2, only the method shows that there may be a body of unknown length.
        if (req.http.Transfer-Encoding || std.integer(req.http.Content-Length, 0) > 16384 ||
            (req.proto ~ "HTTP/2" && !req.http.Content-Length && req.method !~ "^(GET|HEAD|OPTIONS|DELETE|TRACE)$")) {
            # These methods have no body, so a request that declares a body must not bypass the rules.
            if (req.method == "GET" || req.method == "HEAD") {
                return (synth(413));
            }
            call select_site;
            return (pass);
        }
        if (req.http.Content-Length) {
            std.cache_req_body(16KB);
        }

        set req.backend_hint = robotsd;
        if (req.url ~ "^/robots\.txt(\?|$)") {
            # robotsd serves the robots.txt that it enforces, even to crawlers whose other requests are refused.
            set req.http.X-Robotsd = "file";
        } else {
            set req.http.X-Robotsd = "question";
            # The request target as received, not decoded.
            set req.http.X-Original-URI = req.url;
            set req.http.X-Original-Method = req.method;
            # robotsd selects the [[site]] by Host.
            set req.url = "/-/auth/varnish";
        }
        return (pass);
    }
    call select_site;
    # A fragment has the verdict of its page.
    if (req.esi_level > 0 && req_top.http.Robots-Verdict) {
        set req.http.Robots-Verdict = req_top.http.Robots-Verdict;
    }
    # The application may vary its answer by the verdict, so the answer to a tagged request must not be cached for other clients.
    if (req.http.Robots-Verdict) {
        return (pass);
    }
}

sub vcl_backend_fetch {
    # This field is set here, so that the site gets the X-Real-IP of a proxy in front of Varnish.
    if (bereq.http.X-Robotsd == "question") {
        set bereq.http.X-Real-IP = client.ip;
    }
    unset bereq.http.X-Robotsd;
}

sub vcl_deliver {
    if (req.http.X-Robotsd == "question") {
        # 4xx is a refusal, or the answer to a decision request that robotsd does not accept. Such a
        # request must not bypass the rules.
        if (resp.status < 400 || resp.status >= 500) {
            if (resp.status == 200 && resp.http.Robots-Verdict) {
                set req.http.Robots-Verdict = resp.http.Robots-Verdict;
            }
            set req.url = req.http.X-Original-URI;
            unset req.http.X-Original-URI;
            unset req.http.X-Original-Method;
            unset req.http.X-Robotsd;
            return (restart);
        }
    } else if (req.http.X-Robotsd == "file" && resp.status != 200 && resp.status != 304) {
        # The site serves its own file if robotsd does not know the host or does not answer.
        unset req.http.X-Robotsd;
        return (restart);
    }
}
