// File servers in Node. Each finds the path of a request in a different common way:
//   url     new URL(req.url, base), as in the documentation of http.IncomingMessage
//   legacy  url.parse(req.url), as in older versions of this documentation
//   decode  decodeURIComponent() of the part before the query, then path.normalize(), as serve-static does
//   whole   decodeURIComponent(req.url), then the part before the query
//   match   each segment is a parameter and decoded separately, as Express matches `/:folder/:name`
'use strict';
const fs = require('fs');
const http = require('http');
const path = require('path');
const url = require('url');

const [way, port, tree] = process.argv.slice(2);

const ways = {
  url: (req) => decodeURIComponent(new URL(req.url, 'http://base').pathname),
  legacy: (req) => decodeURIComponent(url.parse(req.url).pathname),
  decode: (req) => path.posix.normalize(decodeURIComponent(req.url.split('?')[0])),
  whole: (req) => decodeURIComponent(req.url).split('?')[0],
  match: (req) => {
    const segments = req.url.split('?')[0].split('/').filter((segment) => segment !== '');
    return '/' + segments.map(decodeURIComponent).join('/');
  },
};

http.createServer((req, res) => {
  let body;
  try {
    let file = path.join(tree, ways[way](req));
    if (!file.startsWith(tree + '/')) throw new Error('outside');
    if (fs.statSync(file).isDirectory()) file = path.join(file, 'index.html');
    body = fs.readFileSync(file);
  } catch {
    res.statusCode = 404;
    body = Buffer.from('not found\n');
  }
  res.setHeader('Content-Length', body.length);
  res.end(body);
}).listen(Number(port), '127.0.0.1');
