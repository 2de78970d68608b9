/** Tools and feeds in the forms of the original system, converted, uploaded to a real system and run in each sandbox (M1, R2, R3). */
import { beforeAll, describe, expect, test } from 'vitest';
import { reasonToSkip } from '../../container-runner/test/support/levels.ts';
import type { RunResult } from '../../src/view/result.ts';
import { migrated } from '../support/migrated.ts';
import { sharedPart } from '../support/shared.ts';

const LEVELS = (['docker', 'bubblewrap', 'wasm'] as const).filter((level) => reasonToSkip(level) === null);

/** @param level the sandbox; it is the only field that is not the original's */
const files = (level: string): Record<string, string> => ({
  'agent.yml': `kind: Agent
version: "1"
name: taster_${level}
summary: Judges wines.
persona: You judge wines.
import:
  tools: [points, cellar, label, pulse]
`,
  // Cortex-MK1: JSON in the first argument, a failure with exit code 1
  'tools/points/tool.yml': `kind: Tool
version: "1.0"
name: points
summary: Adds the points of a wine.
author: TEST
state: stable
description: Adds the points of a wine.
returns: The sum of the points
implementation:
  type: script
  runtime: python3
  entrypoint: ./scripts/points.py
  resources: { memory: 128M, timeout: 60, sandbox: ${level} }
  build: { engine: pip, requirements_file: ./requirements.txt }
  health_check: { type: script, command: "python3 ./scripts/points.py '{}'" }
parameters:
  - { name: points, type: array, description: Points, required: true }
examples:
  - description: Two judges
    input: { points: [88, 90] }
`,
  'tools/points/scripts/points.py': `import json
import sys

if len(sys.argv) < 2:
    sys.exit("no parameters")
points = json.loads(sys.argv[1])["points"]
if not points:
    print(json.dumps({"success": False, "error": "no points were given"}))
    sys.exit(1)
print(json.dumps({"success": True, "sum": sum(points)}))
`,
  // agent-lib: the path of a file in the first argument, modules beside the script
  'tools/cellar/tool.yml': `kind: Tool
version: "1.0"
name: cellar
summary: Finds a wine in the cellar.
category: wine
runtime: python3
entrypoint: ./src/main.py
timeout_secs: 60
implementation: { resources: { sandbox: ${level} } }
input_schema:
  type: object
  required: [name]
  properties: { name: { type: string } }
examples:
  - { description: A red one, params: { name: Merlot } }
`,
  'tools/cellar/src/main.py': `import json, os, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from shelf.rows import row_of

with open(sys.argv[1]) as file:
    print(json.dumps({"success": True, "row": row_of(json.load(file)["name"]), "same": json.load(sys.stdin)}))
`,
  'tools/cellar/src/shelf/rows.py': 'from .names import ROWS\n\ndef row_of(name):\n    return ROWS.get(name)\n',
  'tools/cellar/src/shelf/names.py': 'ROWS = {"Merlot": 7}\n',
  // agent-lib: bash that reads standard input
  'tools/label/tool.yml': `kind: Tool
version: "1.0"
name: label
summary: Prints a label.
implementation: { runtime: bash, entrypoint: run.sh, timeout: 60, resources: { sandbox: ${level} } }
input_schema: { type: object, properties: { text: { type: string } } }
environment: { variables: { LEVEL: ${level} } }
`,
  'tools/label/run.sh': `#!/usr/bin/env bash
set -euo pipefail
input=$(cat)
[[ -f "$1" ]] && file=$(cat -- "$1")
[[ "$input" == "$file" ]] && printf '{"success": true, "input": %s, "level": "%s"}' "$input" "$LEVEL"
`,
  'tools/pulse/feed.yml': `kind: Feed
name: pulse
version: "1.0"
summary: Whether the cellar is closed.
implementation: { runtime: bash, entrypoint: ./poll.sh, resources: { sandbox: ${level} } }
interval_secs: 30
`,
  'tools/pulse/poll.sh': 'echo \'{"closed": true}\'\n',
});

describe.each(LEVELS)('[M1] tools of the original in the sandbox %s', (level) => {
  const calls: readonly [name: string, parameters: object][] = [
    ['points', { points: [88, 90] }],
    ['points', { points: [] }],
    ['cellar', { name: 'Merlot' }],
    ['label', { text: 'it’s "red"' }],
    ['pulse', {}],
  ];
  let result: RunResult;

  beforeAll(async () => {
    const url = await sharedPart('system');
    const { migration } = migrated(files(level));
    // The files of each level replace those of the one before it.
    const uploaded = await fetch(`${url}/manifests`, {
      method: 'POST',
      body: JSON.stringify({ files: Object.fromEntries(migration.files) }),
    });
    expect([uploaded.status, await uploaded.json()]).toMatchObject([201, { problems: [] }]);
    const actions = calls.map(
      ([name, parameters], index) =>
        `<action type="tool" name="${name}" id="a${index}" timeout="200">${JSON.stringify({ parameters })}</action>`,
    );
    const response = await fetch(`${url}/execute/direct`, {
      method: 'POST',
      body: JSON.stringify({ agent: `taster_${level}`, protocol_text: actions.join('\n'), stream: false }),
    });
    result = (await response.json()) as RunResult;
  });

  test('a script of Cortex-MK1 gets JSON as its argument, and its own error is the failure', () => {
    expect(result.actions[0]?.output).toEqual({ success: true, sum: 178 });
    expect(result.actions[1]?.error).toMatchObject({
      code: 'nonzero_exit',
      message: expect.stringContaining('no points were given') as string,
    });
  });

  test('a script of agent-lib gets a file and standard input, and imports the modules beside it', () => {
    expect(result.actions[2]?.output).toEqual({ success: true, row: 7, same: { name: 'Merlot' } });
  });

  test('a bash script runs', () => {
    expect(result.actions[3]?.output).toEqual({ success: true, input: { text: 'it’s "red"' }, level });
  });

  test('a Feed is a tool that can be called', () => {
    expect(result.actions[4]?.output).toEqual({ closed: true });
  });
});
