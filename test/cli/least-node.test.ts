import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { isNodeSupported, LEAST_NODE } from '../../cli/project/least-node.ts';

test.each([
  ['20.19.5', false],
  ['22.14.9', false],
  ['22.15.0', true],
  ['23.0.0', true],
])('[K5] Node %s is supported: %s', (version, isSupported) => {
  expect(isNodeSupported(version)).toBe(isSupported);
});

test.each(['README.md', 'docs/first-agent.md', 'template/README.md'])('[K5] %s names the least Node', (file) => {
  expect(readFileSync(file, 'utf8')).toContain(`Node ${LEAST_NODE} or newer`);
});

test('[K5] no package of a new project requires a newer Node', () => {
  interface Locked {
    readonly engines?: { readonly node?: string };
  }
  const { packages } = JSON.parse(readFileSync('template/package-lock.json', 'utf8')) as {
    readonly packages: Readonly<Record<string, Locked>>;
  };
  const least = Object.entries(packages).flatMap(([name, { engines }]) => {
    // ranges with alternatives name every supported line
    const [, version] = /^>= ?(\d+\.\d+)(?:\.\d+)?$/.exec(engines?.node ?? '') ?? [];
    return version === undefined ? [] : [{ name, version }];
  });
  const isNewer = (version: string): boolean => {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    const [leastMajor = 0, leastMinor = 0] = LEAST_NODE.split('.').map(Number);
    return major > leastMajor || (major === leastMajor && minor > leastMinor);
  };
  expect(least.length).toBeGreaterThan(10);
  expect(least.filter(({ version }) => isNewer(version))).toEqual([]);
});

test('[K5] new projects require the least Node', () => {
  expect(JSON.parse(readFileSync('template/package.json', 'utf8'))).toMatchObject({
    engines: { node: `>=${LEAST_NODE}` },
  });
});
