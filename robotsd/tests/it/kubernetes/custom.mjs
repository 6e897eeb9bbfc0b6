// Validates objects of the Gateway API and of Envoy Gateway (JSON on standard input) with the schemas in the given folder. The schemas
// accept unknown keys, so a key that no schema reads is an error here.
import { readFileSync } from "node:fs";

const root = `${process.argv[2]}/node_modules/@kubernetes-models`;
const packages = { "gateway.networking.k8s.io": "gateway-api", "gateway.envoyproxy.io": "envoy-gateway" };

// The schemas are those of the standard channel, which does not have the filter ExternalAuth.
const isExperimental = (error) => error.keyword === "enum" && /\/filters\/\d+\/type$/.test(error.instancePath);

// Returns the same value, and adds every path that is read to `seen`.
function watched(value, path, seen) {
  if (value === null || typeof value !== "object") return value;
  const copy = Array.isArray(value) ? [] : {};
  for (const [key, inner] of Object.entries(value)) copy[key] = watched(inner, `${path}/${key}`, seen);
  return new Proxy(copy, {
    get(target, key) {
      if (typeof key === "string" && Object.hasOwn(target, key)) seen.add(`${path}/${key}`);
      return target[key];
    },
  });
}

function paths(value, path) {
  if (value === null || typeof value !== "object") return [];
  return Object.entries(value).flatMap(([key, inner]) => [`${path}/${key}`, ...paths(inner, `${path}/${key}`)]);
}

let failed = false;
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const [group, version] = object.apiVersion.split("/");
  const name = `${object.kind} ${object.metadata.name}`;
  const file = `${root}/${packages[group]}/${group}/${version}/${object.kind}.js`;
  const schema = /_schemas\/(\w+)\.js/.exec(readFileSync(file, "utf8"))[1];
  const { validate } = await import(`${root}/${packages[group]}/_schemas/${schema}.js`);
  const seen = new Set();
  const errors = validate(watched(object, "", seen)) ? [] : validate.errors;
  const experimental = errors.filter(isExperimental).filter((error) => {
    const [, rule, filter] = /\/rules\/(\d+)\/filters\/(\d+)\//.exec(error.instancePath);
    return object.spec.rules[rule].filters[filter].type === "ExternalAuth";
  });
  for (const { instancePath, keyword, params } of errors.filter((error) => !experimental.includes(error))) {
    console.error(`${name}: ${instancePath}: ${keyword} ${JSON.stringify(params)}`);
    failed = true;
  }
  for (const path of paths(object, "").filter((path) => !seen.has(path))) {
    console.error(`${name}: ${path} is unknown`);
    failed = true;
  }
  console.log(name);
}
process.exit(failed ? 1 : 0);
