import { describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import { withPackages } from '../../images/dockerfile-packages.ts';

const FILES = {
  'needs.txt': '# comment\nflask>=2\nuvicorn[standard]==0.30  # server\n',
  'app/other.txt': 'git+https://x\n',
};
const of = (run: string): string => `FROM base\nRUN ${run}\nCMD ["x"]`;

describe('[R3] packages of a Dockerfile are installed before the build, which has no network', () => {
  test.each([
    ['pip install --no-cache-dir -r needs.txt', ['flask>=2', 'uvicorn[standard]==0.30']],
    ['python3 -m pip install -r ./needs.txt', ['flask>=2', 'uvicorn[standard]==0.30']],
    ['pip3 install "flask>=2,<3" requests', ['flask>=2,<3', 'requests']],
  ])('%s', (run, requirements) => {
    const { dockerfile, steps } = withPackages(of(run), FILES);
    expect(steps).toEqual([{ archive: '.cortex-packages-0.tar', requirements, image: 'base' }]);
    expect(dockerfile).toBe(`FROM base
ADD .cortex-packages-0.tar /opt/cortex-packages/0/
ENV PYTHONPATH=/opt/cortex-packages/0/packages PATH=/opt/cortex-packages/0/packages/bin:$PATH
CMD ["x"]`);
  });

  test.each([
    ['pip install -r needs.txt && id'],
    ['pip install -r missing.txt'],
    ['pip install -r app/other.txt'],
    ['pip install --index-url https://x flask'],
    ['pip install ./local'],
    ['pip install $PACKAGE'],
    ['pip install "$(id)"'],
    ['pip install'],
    ['pip download flask'],
    ['apt-get install pip install flask'],
  ])('%s stays as it is', (run) => {
    expect(withPackages(of(run), FILES)).toEqual({ dockerfile: of(run), steps: [] });
  });

  test('more packages or more instructions than allowed stay as they are', () => {
    const { buildPackageSteps: most, buildRequirements } = limits;
    expect(withPackages(`FROM base\n${'RUN pip install a\n'.repeat(most + 2)}`, {}).steps).toHaveLength(most);
    const many = Array.from({ length: buildRequirements + 1 }, (_, index) => `a${index}`).join(' ');
    expect(withPackages(of(`pip install ${many}`), {}).steps).toEqual([]);
  });

  test('a line of many comments takes linear time', () => {
    const begun = performance.now();
    withPackages(of('pip install -r needs.txt'), { 'needs.txt': `${' #'.repeat(300_000)}\u2028x` });
    expect(performance.now() - begun).toBeLessThan(5_000);
  });

  test('each stage has its own packages and image', () => {
    const text = 'FROM one AS build\nRUN pip install a\nRUN pip install b\nFROM Build\nFROM scratch\nRUN pip install c';
    const { dockerfile, steps } = withPackages(text, {});
    expect(steps.map(({ image, requirements }) => [image, requirements])).toEqual([
      ['one', ['a']],
      ['one', ['b']],
    ]);
    expect(dockerfile).toContain('ENV PYTHONPATH=/opt/cortex-packages/1/packages:$PYTHONPATH');
    expect(dockerfile).toContain('RUN pip install c');
  });
});
