"""Strictly validates the objects of Kubernetes itself in the given manifests, and writes all other objects as JSON."""

import json
import sys

import kubernetes_validate
import yaml

OTHERS = ("gateway.networking.k8s.io/", "gateway.envoyproxy.io/")

others = []
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        for document in yaml.safe_load_all(file):
            if document["apiVersion"].startswith(OTHERS):
                others.append(document)
                continue
            try:
                kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
            except Exception as error:
                sys.exit(f"{name}: {document['kind']} {document['metadata']['name']}: {str(error).splitlines()[0]}")
json.dump(others, sys.stdout)
