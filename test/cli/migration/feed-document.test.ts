import { describe, expect, test } from 'vitest';
import { migrated } from '../../support/migrated.ts';

const poll = { path: 'm/feeds/pulse/poll.sh', text: 'echo \'{"ok": true}\'\n' };

function load(yaml: string): ReturnType<typeof migrated> {
  return migrated([{ path: 'm/feeds/pulse/feed.yml', text: yaml }, poll]);
}

describe('[M1] a document of kind Feed', () => {
  const { catalog, problems, warnings } = load(`kind: Feed
name: pulse
version: "1.0"
summary: How the service is doing
runtime: bash
entrypoint: ./poll.sh
interval_secs: 45
timeout_secs: 5
output_schema:
  type: object
  properties:
    ok: { type: boolean }
`);

  test('is a tool that runs its script and may be polled', () => {
    expect(problems).toEqual([]);
    expect(catalog.tool('pulse')).toMatchObject({
      kind: 'Tool',
      implementation: { type: 'script', runtime: 'shell', source: poll.text },
      parameters: { properties: {} },
      returns: { properties: { ok: { type: 'boolean' } } },
      effects: 'idempotent',
      timeoutMs: 5_000,
      metadata: { feed: { interval: 45 } },
    });
  });

  test('has one warning for each rewritten part, at its place', () => {
    expect(warnings.map(({ line, field, message }) => ({ line, field, message }))).toEqual([
      { line: 1, field: 'kind', message: 'Feed, understood as a tool that context feeds can have as their source' },
      { line: 5, field: 'runtime', message: 'understood as implementation: {runtime, entrypoint}' },
      { line: 8, field: 'timeout_secs', message: 'understood as timeout' },
      { line: 9, field: 'output_schema', message: 'understood as returns' },
    ]);
  });

  test.each(['interval', 'interval_secs', 'refresh_seconds'])('keeps its %s', (field) => {
    const found = load(
      `kind: Feed\nname: pulse\nversion: "1"\nsummary: s\nentrypoint: poll.sh\nruntime: bash\n${field}: 30\n`,
    );
    expect(found.catalog.tool('pulse')?.metadata).toEqual({ feed: { interval: 30 } });
  });

  test('whose script does not exist gives an error at the place where it is named', () => {
    const found = load('kind: Feed\nname: pulse\nversion: "1"\nsummary: s\nruntime: bash\nentrypoint: gone.sh\n');
    expect(found.problems).toEqual([
      expect.objectContaining({ line: 6, message: 'names the file "gone.sh", but there is no m/feeds/pulse/gone.sh' }),
    ]);
  });
});
