import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { cornerOf, crosses, move, NODE, PITCH, placeAt } from '../../../console/run/graph-geometry.ts';
import { Layout } from '../../../console/run/layout.ts';

interface Node {
  readonly key: string;
  readonly index: number;
  readonly iteration: number;
  readonly dependencies: Node[];
}

/** `b<a,c` depends on a and c; `2:` begins iteration 2. */
function nodesOf(text: string): Node[] {
  let iteration = 1;
  const nodes: Node[] = [];
  for (const word of text.split(' ')) {
    if (word.endsWith(':')) {
      iteration = Number(word.slice(0, -1));
      continue;
    }
    const [key = '', needs = ''] = word.split('<');
    const dependencies = nodes.filter((node) => needs.split(',').includes(node.key));
    nodes.push({ key, index: nodes.length, iteration, dependencies });
  }
  return nodes;
}

function placesOf(nodes: readonly Node[]): string[] {
  const layout = new Layout();
  layout.update(nodes);
  return nodes.map(({ key }, index) => `${key} ${layout.places[index]?.column},${layout.places[index]?.row}`);
}

const graphs = fc
  .array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.array(fc.nat(), { maxLength: 3 })), {
    minLength: 1,
    maxLength: 60,
  })
  .map((drafts) => {
    let iteration = 1;
    const nodes: Node[] = [];
    for (const [index, [step, needs]] of drafts.entries()) {
      if (step === 0) iteration += 1;
      const dependencies = needs.flatMap((need) => nodes[need % Math.max(1, index)] ?? []);
      nodes.push({ key: `n${index}`, index, iteration, dependencies });
    }
    return nodes;
  });

describe('[U3] the layout of the graph', () => {
  test.each([
    ['a b c', ['a 0,0', 'b 0,1', 'c 0,2']],
    ['a b<a c<b', ['a 0,0', 'b 1,0', 'c 2,0']],
    ['a b c<a,b d<c e', ['a 0,0', 'b 0,1', 'c 1,0', 'd 2,0', 'e 0,2']],
    ['a b<a 2: c d<c,a', ['a 0,0', 'b 1,0', 'c 2,0', 'd 3,0']],
  ])('%s', (text, places) => {
    expect(placesOf(nodesOf(text))).toEqual(places);
  });

  test('a node never moves, each has a place of its own, right of what it needs and of the earlier iterations', () => {
    fc.assert(
      fc.property(graphs, (nodes) => {
        const layout = new Layout();
        for (let length = 1; length <= nodes.length; length += 1) {
          const before = [...layout.places];
          layout.update(nodes.slice(0, length));
          expect(layout.places.slice(0, before.length)).toEqual(before);
        }
        const { places } = layout;
        expect(new Set(places.map(({ column, row }) => `${column},${row}`)).size).toBe(nodes.length);
        for (const [index, { dependencies, iteration }] of nodes.entries()) {
          const column = places[index]?.column ?? -1;
          for (const need of dependencies) expect(column).toBeGreaterThan(places[need.index]?.column ?? NaN);
          for (const [other, { iteration: earlier }] of nodes.entries()) {
            if (earlier < iteration) expect(column).toBeGreaterThan(places[other]?.column ?? NaN);
          }
        }
      }),
    );
  });

  test('2,000 actions', () => {
    const nodes: Node[] = [];
    for (let index = 0; index < 2_000; index += 1) {
      const dependencies = index % 5 === 0 ? [] : nodes.slice(-1);
      nodes.push({ key: `n${index}`, index, iteration: 1 + Math.floor(index / 250), dependencies });
    }
    const before = performance.now();
    const layout = new Layout();
    layout.update(nodes);
    expect(performance.now() - before).toBeLessThan(1_000);
    expect(layout.places).toHaveLength(2_000);
    expect(layout.columns).toHaveLength(40);
  });
});

describe('[U3] the geometry of the graph', () => {
  const layout = new Layout();
  layout.update(nodesOf('a b c<a d<c e<d f<d'));

  test('a node is found at its place', () => {
    for (const place of layout.places) {
      const { x, y } = cornerOf(place);
      expect(placeAt({ x, y })).toEqual(place);
      expect(placeAt({ x: x + NODE.width, y: y + NODE.height })).toEqual(place);
      expect(placeAt({ x: x + PITCH.x, y: y - 1 })).toEqual({ column: place.column + 1, row: place.row - 1 });
    }
  });

  test.each([
    ['through it', [1, 2], [4, 2], true],
    ['from above to below', [2, 0], [3, 9], true],
    ['left of it', [0, 2], [1, 2], false],
  ] as const)('an edge %s crosses the area: %s to %s is %s', (_, start, end, isCrossing) => {
    const place = ([column, row]: readonly [number, number]) => ({ column, row });
    expect(crosses(place(start), place(end), { from: place([2, 2]), to: place([3, 3]) })).toBe(isCrossing);
  });

  test.each([
    ['a', 'ArrowDown', 'b'],
    ['a', 'ArrowUp', undefined],
    ['a', 'ArrowRight', 'c'],
    ['c', 'ArrowLeft', 'a'],
    ['f', 'ArrowUp', 'e'],
    ['f', 'Home', 'a'],
    ['a', 'End', 'e'],
    ['a', 'x', undefined],
  ])('from %s, %s goes to %s', (from, key, to) => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    const index = move(key, layout, ids.indexOf(from));
    expect(ids[index ?? -1]).toBe(to);
  });
});
