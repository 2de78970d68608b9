import { h } from 'preact';
import { afterAll, describe, expect, test } from 'vitest';
import { MarkdownText } from '../../../console/chat/markdown-text.tsx';
import * as limits from '../../../console/parts/limits.ts';
import { PAYLOADS } from '../payloads.ts';
import { FakeElement, removeDocument, rendered, shown } from './fake-dom.ts';

afterAll(removeDocument);

const ELEMENTS: ReadonlySet<string> = new Set(
  'main div p h3 h4 h5 h6 ul ol li blockquote pre code strong em del br hr a span table thead tbody tr th td button'.split(
    ' ',
  ),
);
const ATTRIBUTES: ReadonlySet<string> = new Set(
  'class href title rel target tabindex role aria-label start type'.split(' '),
);

function markdown(text: string, isOpen = false, into?: FakeElement): FakeElement {
  return shown(h(MarkdownText, { text, isOpen }), into);
}

/** Only what this page makes, and links that run nothing. */
function expectInert(root: FakeElement): void {
  for (const element of root.all()) {
    expect(ELEMENTS).toContain(element.localName);
    for (const name of element.attributes.keys()) expect(ATTRIBUTES).toContain(name);
    const href = element.attributes.get('href');
    if (element.localName === 'a') expect(href).toMatch(/^(https?:\/\/|mailto:)[^\s"<>]*$/);
    else expect(href).toBeUndefined();
    if (element.localName !== 'a') continue;
    expect(element.attributes.get('rel')).toBe('noopener noreferrer nofollow');
    expect(element.attributes.get('target')).toBe('_blank');
  }
}

describe('hostile texts', () => {
  test.each(PAYLOADS)('[U2] is inert: $name', ({ text }) => {
    expectInert(markdown(text));
    // At each place where a stream may stop.
    const growing = new FakeElement('main');
    for (let end = 1; end <= text.length; end += 1) {
      markdown(text.slice(0, end), true, growing);
      expectInert(growing);
    }
    markdown(text, false, growing);
    expectInert(growing);
  });

  test('[U2] html is shown as the text that it is', () => {
    expect(markdown('a <b onclick="x()">b</b> c').text).toBe('a <b onclick="x()">b</b> c');
  });

  test('[U2] characters that reorder text are visible', () => {
    const { text } = markdown('invoice\u202Egnp.exe `a\u2066b`');
    expect(text).toBe('invoice[U+202E]gnp.exe a[U+2066]b');
  });

  test.each([
    ['[https://bank.example](https://evil.example/x)', ' (leads to evil.example)'],
    ['[www.example.com](https://example.com)', ''],
  ])('[U2] %s says where it leads: "%s"', (text, note) => {
    const [, ...after] = markdown(text).text.split(/(?= \()/);
    expect(after.join('')).toBe(note);
  });
});

describe('images', () => {
  test('[U2] an image is loaded by a click only, without a referrer', async () => {
    const root = markdown('![a chart](https://example.com/a.png)');
    expect(root.find('img')).toEqual([]);
    const [button] = root.find('button');
    expect(button?.text).toBe('Load image from example.com: a chart');
    button?.click();
    await rendered();
    const [image] = root.find('img');
    expect(Object.fromEntries(image?.attributes ?? [])).toEqual({
      src: 'https://example.com/a.png',
      alt: 'a chart',
      referrerpolicy: 'no-referrer',
    });
  });

  test.each(['data:image/png;base64,AA==', 'javascript:alert(1)', '/a.png', 'mailto:a@b.c'])(
    '[U2] an image at %s cannot be loaded',
    (href) => {
      const root = markdown(`![x](${href})`);
      expect(root.find('button')).toEqual([]);
      expect(root.text).toBe('[image: x]');
    },
  );
});

describe('constructs', () => {
  const names = (text: string): string[] =>
    markdown(text)
      .all()
      .map(({ localName }) => localName)
      .slice(2);

  test.each([
    ['# a\n## b\n#### c', ['h3', 'h4', 'h6']],
    ['**a** *b* ~~c~~ `d`', ['p', 'strong', 'em', 'del', 'code']],
    ['- a\n  - b', ['ul', 'li', 'ul', 'li']],
    ['> a', ['blockquote', 'p']],
    ['|a|\n|-|\n|b<br>c|', ['div', 'table', 'thead', 'tr', 'th', 'tbody', 'tr', 'td', 'br']],
    ['```js\na\n```', ['div', 'div', 'span', 'button', 'pre', 'code']],
    ['a\n===\nb\n---', ['h3', 'h4']],
    ['**a *b***', ['p', 'strong', 'em']],
    ['**__a:** b', ['p', 'strong']],
    ['**H**yper', ['p', 'strong']],
    ['snake_case_name, 2*3*4, ****, __, f(*a, **b)', ['p']],
    ['- a\n\n  b', ['ul', 'li', 'p', 'p']],
    ['[![a](https://a.example/c)](https://a.example)', ['p', 'a']],
    ['``a`b``', ['p', 'code']],
  ])('[U2] %j', (text, expected) => {
    expect(names(text)).toEqual(expected);
  });

  test.each([
    ['(www.example.com/a)', 'https://www.example.com/a'],
    ['<mailto:a@example.com>', 'mailto:a@example.com'],
    ['[a](https://example.com/?x=1&amp;y=2)', 'https://example.com/?x=1&y=2'],
    ['[A\nb]\n\n[a b]: <https://example.com/> "title"', 'https://example.com/'],
    ['[a [b](https://example.com/) c', 'https://example.com/'],
    ['[a](https://example.com/a_(b) "title")', 'https://example.com/a_(b)'],
  ])('[U2] %j is a link', (text, href) => {
    expect(
      markdown(text)
        .find('a')
        .map(({ attributes }) => attributes.get('href')),
    ).toEqual([href]);
  });

  test('[U2] tasks are marked, numbers go on, columns are aligned', () => {
    const tasks = markdown('- [x] a\n- [ ] b').find('span');
    expect(tasks.map(({ attributes }) => attributes.get('aria-label'))).toEqual(['done', 'to do']);
    expect(markdown('3. a').find('ol')[0]?.attributes.get('start')).toBe('3');
    expect(markdown('|a|\n|-:|').find('th')[0]?.attributes.get('class')).toBe('align-right');
  });
});

describe('a text that arrives', () => {
  const parts = [
    '# A title\n\nSome **bold** text\n- one\n- two\n\n1. a\n2. b\n',
    '\n```js\nlet x = 1;\n\nlet y;\n```\n\nThe [end](https://a.b/).',
  ];
  const whole = parts.join('');

  test('[U2] is at its end what it would be at once', () => {
    const growing = new FakeElement('main');
    for (let end = 1; end <= whole.length; end += 1) markdown(whole.slice(0, end), true, growing);
    markdown(whole, false, growing);
    expect(outline(growing)).toEqual(outline(markdown(whole)));
  });

  test('[U2] never becomes a heading for the beginning of a list', () => {
    const growing = new FakeElement('main');
    for (let end = 1; end <= whole.length; end += 1) {
      markdown(whole.slice(0, end), true, growing);
      expect(growing.find('h3').length + growing.find('h4').length).toBeLessThanOrEqual(1);
      expect(growing.text).not.toContain('**');
      expect(growing.text).not.toContain('```');
    }
  });

  test('[U2] keeps the elements of the blocks that are complete', () => {
    const growing = markdown('# A\n\nb\n\nc', true);
    const [heading] = growing.find('h3');
    markdown('# A\n\nb\n\ncd **e', true, growing);
    expect(growing.find('h3')[0]).toBe(heading);
    markdown('# A\n\nb\n\ncd **e**', false, growing);
    expect(growing.find('h3')[0]).toBe(heading);
  });

  test('[U2] that is replaced by another one is read again', () => {
    const growing = markdown('# A\n\nb\n\nc', true);
    markdown('Other\n\ntext\n\nhere', true, growing);
    expect(growing.find('h3')).toEqual([]);
    expect(growing.text).toBe('Othertexthere');
  });
});

function outline(root: FakeElement): string[] {
  return root.all().map((element) => `${element.localName} ${element.text}`);
}

describe('bounds', () => {
  const many = 100_000;
  const texts: Readonly<Record<string, string>> = {
    'nested quotes': `${'> '.repeat(5_000)}x`,
    'nested lists in one line': `${'- '.repeat(5_000)}x`,
    'nested lists': Array.from({ length: 5_000 }, (_, depth) => `${' '.repeat(depth * 2)}- x`)
      .join('\n')
      .slice(0, limits.markdownChars),
    'nested emphasis': `${'*'.repeat(5_000)}a${'*'.repeat(5_000)}`,
    brackets: '['.repeat(many),
    stars: '*'.repeat(many),
    backticks: '`'.repeat(many),
    links: '[a](b)'.repeat(many / 6),
    'link starts': '[a]('.repeat(many / 4),
    'an e-mail address': `${'a-'.repeat(many / 2)}@`,
    'an address with references': `http://a.b/${'&a;'.repeat(many / 3)}`,
    spaces: `a${' '.repeat(many)}b`,
    tags: '<a b="c" '.repeat(many / 9),
    'table cells': `${'a|'.repeat(5_000)}\n${'-|'.repeat(5_000)}\n${'x|'.repeat(5_000)}`,
    paragraphs: 'a\n\n'.repeat(many / 2),
    'lists with underlines': '- ===\n    |-|'.repeat(many / 12),
    'quotes that go on': '**---\n  > ```\n'.repeat(many / 15),
    'titles without an end': '[a](b "'.repeat(2_000),
    'nested links': `${'['.repeat(24)}x${'](http://a.b)'.repeat(24)}`.repeat(40),
    'blank lines in a list': `- a\n${'\n'.repeat(many)}`,
    'quotes that go on without a sign': '> a\nb\n'.repeat(many / 6),
    'emphasis without an end': `${'*a **b'.repeat(many / 6)}${'*'.repeat(20)}`,
    'exclamation marks': '!'.repeat(many),
    'addresses side by side': 'http://a'.repeat(many / 8),
    'links with one end': `${'[a](b'.repeat(many / 5)})`,
    'short rows of a wide table': `${'a|'.repeat(many / 8)}\n${'-|'.repeat(many / 8)}\n${'x\n'.repeat(many / 8)}`,
    'line breaks of tables': '<br>'.repeat(many / 4),
    'signs in a heading': `# a ${'#'.repeat(many)}b`,
  };

  test.each(Object.entries(texts))('[U2] %s are formatted within bounds, or shown as they are', (_, text) => {
    // Without the bounds, most of these throw, or take longer than a test may.
    for (const isOpen of [true, false]) {
      const root = markdown(text, isOpen);
      expectInert(root);
      expect(depthOf(root)).toBeLessThan(4 * limits.markdownDepth);
      expect(root.all().length).toBeLessThan(1.5 * limits.markdownNodes);
    }
  });

  test('[U2] what is left when the work is spent is shown as it is, and no text is lost', () => {
    const unit = 'a-';
    const paragraph = `${unit.repeat(limits.markdownRunChars / 2 - 1)}@`;
    const text = `**first**\n\n${Array.from({ length: 10 }, () => paragraph).join('\n\n')}\n\n**last**`;
    const root = markdown(text);
    expect(root.find('strong').map((element) => element.text)).toEqual(['first']);
    expect(root.text).toBe(`first${paragraph.repeat(10)}**last**`);
  });

  test('[U2] a long text of many blocks is formatted from its beginning to its end', () => {
    const code = `\`\`\`\n${'let x;\n\n'.repeat(2_000)}\`\`\``;
    const text = `${'- a\n- **b**\n\ntext\n\n'.repeat(1_000)}${code}\n\n[c][d]\n\n[d]: https://example.com/`;
    const root = markdown(text);
    expect([root.find('li').length, root.find('strong').length, root.find('p').length]).toEqual([2_000, 1_000, 1_001]);
    expect(root.find('pre').map((element) => element.text)).toEqual(['let x;\n\n'.repeat(2_000)]);
    expect(root.find('a').map((element) => element.text)).toEqual(['c']);
  });

  test('[U2] a text past the bound is shown as it is, its beginning first', () => {
    const text = `**a** ${'b'.repeat(limits.markdownChars)}`;
    const root = markdown(text);
    expect(root.all().map(({ localName }) => localName)).toEqual(['main', 'div', 'pre', 'button']);
    expect(root.find('pre')[0]?.text).toBe(`${text.slice(0, limits.textChars)}…`);
  });
});

function depthOf(element: FakeElement): number {
  let depth = 0;
  for (const child of element.childNodes) if (child instanceof FakeElement) depth = Math.max(depth, depthOf(child));
  return depth + 1;
}
