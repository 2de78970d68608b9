/** What of a tool's Dockerfile the engine's builder gets to see (R3, X2). */
import { describe, expect, test } from 'vitest';

import { sanitizeDockerfile } from '../../images/dockerfile.ts';
import { imageBuild } from '../../images/image-build.ts';
import { limits } from '../../limits.ts';

const lookUp = async (name: string): Promise<string> => {
  if (name === 'python') return 'cortex-edge/python3:abc';
  if (name === 'busybox') return name;
  throw new Error(`the operator does not allow the image ${name}`);
};

describe('accepted Dockerfiles', () => {
  test('[R3] each instruction is on one line, and images have the engine’s names', async () => {
    const dockerfile = `# a comment
FROM python AS First
  # another
RUN echo "a  b" \\
    # inside

    && exit 0
from busybox
COPY --from=first --chown=1:1 ["a  b", "/x"]
COPY --from=0 /y /y
COPY --from=python /z /z
RUN echo --from=evil:1 \\\\ $HOME $((1<<2)) $(( 1 << 2 )) <<<x
VOLUME /data`;
    expect(await sanitizeDockerfile(dockerfile, lookUp)).toBe(`FROM cortex-edge/python3:abc AS First
RUN echo "a  b"     && exit 0
FROM busybox
COPY --from=first --chown=1:1 ["a  b", "/x"]
COPY --from=0 /y /y
COPY --from=cortex-edge/python3:abc /z /z
RUN echo --from=evil:1 \\\\ $HOME $((1<<2)) $(( 1 << 2 )) <<<x
VOLUME /data
`);
  });

  test('[R3] Windows line ends and a byte order mark are accepted', async () => {
    expect(await sanitizeDockerfile('\uFEFFFROM scratch\r\nCOPY a /a\r\n', lookUp)).toBe('FROM scratch\nCOPY a /a\n');
  });
});

test('[R3] every built image has the runner’s label, which no label of the Dockerfile can override', async () => {
  const dockerfile = 'FROM busybox AS a\nLABEL m=2 x="y"\nRUN a\nFROM python\nlabel m=3\nENV m=4\n';
  expect(await sanitizeDockerfile(dockerfile, lookUp, 'm=1')).toBe(
    'FROM busybox AS a\nLABEL m=1\nRUN a\nFROM cortex-edge/python3:abc\nLABEL m=1\nENV m=4\n',
  );
});

test('[R3] too many instructions are refused before the build', async () => {
  const of = (count: number): string => `FROM busybox\n${'RUN true\n'.repeat(count - 1)}`;
  await expect(sanitizeDockerfile(of(limits.buildInstructions), lookUp)).resolves.toContain('RUN true');
  await expect(sanitizeDockerfile(of(limits.buildInstructions + 1), lookUp)).rejects.toThrow(
    '129 instructions (maximum 128)',
  );
});

describe('refused Dockerfiles', () => {
  test.each([
    ['an image that is not allowed', 'FROM evil:1'],
    ['an image after a line continuation', 'FR\\\nOM evil:1'],
    ['an image after a line continuation with blanks', 'FR\\ \t\nOM evil:1'],
    ['an image for another platform', 'FROM --platform=linux/amd64 evil:1'],
    ['an image to copy from', 'FROM busybox\nCOPY --from=evil:1 /a /a'],
    ['an image to copy from, after another option', 'FROM busybox\nCOPY --chown=1 --from=evil:1 /a /a'],
    ['an image to copy from, in quotes', 'FROM busybox\nCOPY --fr"om=evil:1" /a /a'],
    ['an image to copy from, escaped', 'FROM busybox\nCOPY --fr\\om=evil:1 /a /a'],
    ['an image to copy from, after unusual white space', 'FROM busybox\nCOPY \u0085--from=evil:1 /a /a'],
    ['an image to copy from, after a no-break space', 'FROM busybox\nCOPY \u00A0--from=evil:1 /a /a'],
    ['an image to copy from, in a variable', 'FROM busybox\nARG e=evil:1\nCOPY --from=$e /a /a'],
    ['a stage that does not exist yet', 'FROM busybox\nCOPY --from=1 /a /a'],
    ['an image with the name of the current stage', 'FROM busybox AS evil\nCOPY --from=evil /a /a'],
    ['the name of the current stage in another case', 'FROM busybox AS Evil\nCOPY --from=eviL /a /a'],
    ['a stage that some builders read as text', 'FROM busybox\nRUN <<LABEL\nFROM busybox AS evil\nLABEL\n'],
    [
      'a stage that some builders read as text, in quotes',
      'FROM busybox\nCOPY a 1<<-"LABEL" /a/\nFROM busybox AS evil\nLABEL\n',
    ],
    ['a stage after a line that some builders continue', 'FROM busybox\nRUN a \\\r\r\nFROM busybox AS evil\n'],
    ['a mount', 'FROM busybox\nCOPY --mount=type=bind,from=evil:1 /a /a'],
    ['unusual white space before an instruction', 'FROM busybox\n\u0085ADD http://1.1.1.1/ /a'],
    ['a URL to fetch', 'FROM busybox\nADD http://169.254.169.254/ /a'],
    ['a URL to fetch, with the instruction split', 'FROM busybox\nA\\\nDD http://169.254.169.254/ /a'],
    ['an ONBUILD step', 'FROM busybox\nONBUILD ADD http://169.254.169.254/ /a'],
    ['another escape character', '# escape=`\nFROM busybox\nRUN a `\nFROM evil:1'],
    ['two backslashes at the end', 'FROM busybox\nRUN a \\\\\nFROM evil:1'],
    ['a backslash before a blank', 'FROM busybox\nRUN a \\ \\\n\n'],
    ['a heredoc without an instruction', 'FROM busybox\n<<EOF'],
  ])('[R3] %s', async (_name, dockerfile) => {
    await expect(sanitizeDockerfile(dockerfile, lookUp)).rejects.toThrow(/line \d+ of the Dockerfile/);
  });
});

describe('requirements', () => {
  const judge = (requirement: string): boolean =>
    imageBuild.safeParse({ files: { 'a.py': '' }, entrypoint: 'a.py', requirements: [requirement] }).success;

  test.each(['pandas', 'pandas>=2,<3', 'a[b,c]==1!2.0.*', 'x ~= 1.4 , != 1.5', 'y===1.0+local', 'z!=1'])(
    '[R3] %s is valid',
    (text) => {
      expect(judge(text)).toBe(true);
    },
  );
  test.each(['-r x', '--index-url=http://a', 'a @ http://b', './a', 'git+https://a', 'a; os', 'a\n-r x', 'a==', '!'])(
    '[R3] %j is invalid',
    (text) => {
      expect(judge(text)).toBe(false);
    },
  );
  test('[R3] an almost valid requirement is checked quickly', () => {
    // an ambiguous pattern would take years
    for (const filler of ['!', '!=', '=', '== ', ' ,', '1!', '<>']) {
      expect(judge(`a${filler.repeat(190 / filler.length)}$`)).toBe(false);
    }
  });
});
