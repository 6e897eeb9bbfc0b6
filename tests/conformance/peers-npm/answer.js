// Answers cases with an npm package: node answer.js MODULES PARSER CASES BEGIN
// Prints one line for each case from case number BEGIN on: `allow`, `disallow`, or another result of the parser.
'use strict'
const fs = require('fs')
const path = require('path')
const { Readable } = require('stream')

const [modules, parser, cases, begin] = process.argv.slice(2)
const load = (name) => require(path.resolve(modules, 'node_modules', name))
const ORIGIN = 'https://example.com'

const PARSERS = {
  'robots-parser': (robots, agent, url) =>
    load('robots-parser')(`${ORIGIN}/robots.txt`, robots.toString()).isAllowed(url, agent),
  'robots-txt-parser': (robots, agent, url) => {
    const parsed = load('robots-txt-parser')({ userAgent: agent })
    parsed.parseRobots(ORIGIN, robots.toString())
    return parsed.canCrawlSync(url)
  },
  'robots-txt-guard': async (robots, agent, url) => {
    const parsed = await load('robots-txt-parse')(Readable.from([robots]))
    return load('robots-txt-guard')(parsed).isAllowed(agent, url.slice(ORIGIN.length))
  }
}

async function answer ({ robots, agent, url }) {
  try {
    const allowed = await PARSERS[parser](Buffer.from(robots, 'base64'), agent, url)
    return allowed === true ? 'allow' : allowed === false ? 'disallow' : String(allowed)
  } catch (error) {
    return 'error'
  }
}

async function main () {
  for (const one of JSON.parse(fs.readFileSync(cases, 'utf8')).slice(Number(begin))) {
    fs.writeSync(1, `${await answer(one)}\n`)
  }
}
main()
