/** Feeds whose value sessions share must not depend on the session (F6). */
import { describe, expect, test } from 'vitest';
import { agent, problemsOf, relic, tool } from '../../support/manifests.ts';

const http = (url: string, headers = '{}'): string =>
  tool('prices', `effects: pure\nimplementation: {type: http, url: "${url}", headers: ${headers}}`);

/** The issues of an agent with one shared feed. */
function issuesOf(feed: string, { prices = http('https://a.example/prices'), scope = 'shared' } = {}): string[] {
  const variables = 'environment: {variables: {REGION: eu}}';
  const imports = 'import: {tools: [prices], relics: [notes]}';
  return problemsOf({
    'a.yaml': agent('a', `${imports}\n${variables}\ncontext_feeds:\n  - {id: f, shared: true, ${feed}}`),
    'prices.yaml': prices,
    'notes.yaml': relic('notes', `scope: ${scope}`),
  });
}

const TOOL = 'type: periodic, source: {type: tool, name: prices';

describe('[F6] shared: true', () => {
  test.each([
    ['a periodic tool', `${TOOL}}`],
    ['a tool on demand with a cache', 'cache_ttl: 60, source: {type: tool, name: prices}'],
    ['a relic that sessions share', 'type: periodic, source: {type: relic, name: notes, action: list}'],
    ['parameters from a variable of the agent', `${TOOL}, params: {region: "\${REGION}"}}`],
    ['an escaped name', `${TOOL}, params: {text: "$\${SESSION_ID}"}}`],
  ])('is allowed for %s', (_what, feed) => {
    expect(issuesOf(feed)).toEqual([]);
  });

  test.each([
    ['SESSION_ID', '{session: "${SESSION_ID}"}'],
    ['USER_ID', '{filter: [{user: "of ${USER_ID:-nobody}"}]}'],
    ['USER_ID', '{user: "$USER_ID"}'],
    ['USER', '{user: "${USER}"}'],
  ])('is refused for parameters with the variable %s', (name, params) => {
    expect(issuesOf(`${TOOL}, params: ${params}}`)).toEqual([
      expect.stringContaining(
        `context_feeds[0].shared: is not allowed, because the parameters contain \${${name}}: their value differs between sessions`,
      ),
    ]);
  });

  test.each([
    ['its URL', http('https://a.example/${USER_ID}'), 'USER_ID'],
    ['a header', http('https://a.example/', '{x-session: "${SESSION_ID}"}'), 'SESSION_ID'],
  ])('is refused for a tool with such a variable in %s', (_where, prices, name) => {
    expect(issuesOf(`${TOOL}}`, { prices })).toEqual([
      expect.stringContaining(
        `context_feeds[0].shared: is not allowed, because the request of the tool "prices" contains \${${name}}`,
      ),
    ]);
  });

  test.each([
    ['internal', 'type: internal, cache_ttl: 5, source: {name: variables}'],
    ['llm', 'type: periodic, allow_unsafe: true, source: {type: llm, params: {prompt: hi}}'],
    ['workflow', 'type: periodic, allow_unsafe: true, source: {type: workflow, name: w}'],
  ])('is refused for a source of type %s', (type, feed) => {
    expect(issuesOf(feed)).toEqual([
      expect.stringContaining(
        `context_feeds[0].shared: is allowed only for tools and relics: a source of type ${type} belongs to its session`,
      ),
    ]);
  });

  test('is refused for a relic of the session, and for a value that is never fresh', () => {
    expect(issuesOf('type: periodic, source: {type: relic, name: notes, action: list}', { scope: 'session' })).toEqual([
      expect.stringContaining('because the relic "notes" has the scope session: each session has its own'),
    ]);
    expect(issuesOf('source: {type: tool, name: prices}')).toEqual([
      expect.stringContaining('context_feeds[0].shared: needs a cache_ttl above 0, or the type periodic'),
    ]);
  });
});
