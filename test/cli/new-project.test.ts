/** New projects, and the deploy button (K4, K5). */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { deployButton } from '../../cli/project/deploy-button.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { newProject, nextSteps } from '../../cli/project/new-project.ts';
import { VERSION } from '../../src/domain/version.ts';
import { folderOfEach } from './scene.ts';

const TEMPLATE = join(PACKAGE_ROOT, 'template');
let folder = '';
folderOfEach((made) => (folder = made));

/** Relative to the folder, sorted. */
function filesIn(of: string): string[] {
  return readdirSync(of, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(of, join(entry.parentPath, entry.name)))
    .toSorted();
}

describe('[K4] cortex init', () => {
  test('copies the template with the name of the folder', () => {
    const { name } = newProject(TEMPLATE, join(folder, 'Shop Agent'));
    expect(name).toBe('shop-agent');
    const read = (file: string): string => readFileSync(join(folder, 'Shop Agent', file), 'utf8');
    expect(read('wrangler.toml')).toContain('name = "shop-agent"');
    expect(JSON.parse(read('package.json'))).toMatchObject({ name: 'shop-agent' });
    expect(JSON.parse(read('package-lock.json'))).toMatchObject({
      name: 'shop-agent',
      packages: { '': { name: 'shop-agent' } },
    });
    expect(read('.gitignore')).toContain('.dev.vars');
  });

  test('no file keeps the name of the template', () => {
    newProject(TEMPLATE, join(folder, 'shop'));
    const files = filesIn(join(folder, 'shop')).filter((file) =>
      readFileSync(join(folder, 'shop', file), 'utf8').includes('my-agent'),
    );
    expect(files).toEqual([]);
    expect(readFileSync(join(folder, 'shop/runner/Dockerfile'), 'utf8')).toContain('-t shop-runner .');
  });

  test('has no file that only the repository or a local build of the template has', () => {
    const template = join(folder, 'template');
    newProject(TEMPLATE, template, 'my-agent');
    const clean = filesIn(template);
    const own = '.dev.vars.example .dockerignore .gitignore README.md manifests package-lock.json';
    expect(readdirSync(template).toSorted()).toEqual([
      ...own.split(' '),
      'package.json',
      'runner',
      'src',
      'test',
      'tools',
      'tsconfig.json',
      'wrangler.toml',
    ]);
    const made = ['node_modules/a/index.js', '.cortex/a', '.wrangler/a', '.dev.vars', 'src/project.generated.ts'];
    for (const file of [...made, 'wrangler.stage.jsonc']) {
      mkdirSync(dirname(join(template, file)), { recursive: true });
      writeFileSync(join(template, file), '');
    }
    newProject(template, join(folder, 'shop'));
    expect(filesIn(join(folder, 'shop'))).toEqual(clean);
  });

  test.each([
    ['shop', '  cd shop'],
    ['-shop', '  cd ./-shop'],
    ['My Agent', "  cd 'My Agent'"],
    ["it's", String.raw`  cd 'it'\''s'`],
  ])('says how to enter %s', (made, line) => {
    expect(nextSteps(made)).toContain(line);
    expect(nextSteps('.').join()).not.toContain('cd ');
  });

  test('a file or nothing is no folder', () => {
    writeFileSync(join(folder, 'notes'), 'mine');
    expect(() => newProject(TEMPLATE, join(folder, 'notes'))).toThrow('notes is a file. Name a new folder');
    expect(() => newProject(TEMPLATE, ' ')).toThrow('Name the folder of the project');
    expect(readFileSync(join(folder, 'notes'), 'utf8')).toBe('mine');
  });

  test('keeps what is in the folder, and writes nothing into one that is not empty', () => {
    mkdirSync(join(folder, '.git'));
    expect(newProject(TEMPLATE, folder, 'x').name).toBe('x');
    const other = join(folder, 'other');
    mkdirSync(other);
    writeFileSync(join(other, 'mine.txt'), '1');
    expect(() => newProject(TEMPLATE, other)).toThrow('is not empty (mine.txt). Name a new folder');
    expect(existsSync(join(other, 'package.json'))).toBe(false);
  });

  test.each(['-', 'a'.repeat(60), '', 'UPPER'])('refuses the name %j', (name) => {
    expect(() => newProject(TEMPLATE, join(folder, 'p'), name)).toThrow('is not a name for a Worker');
    expect(existsSync(join(folder, 'p'))).toBe(false);
  });

  test('the template has the version of this release, and a lock file of its package.json', () => {
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(TEMPLATE, 'package.json'), 'utf8'),
    ) as Record<string, Record<string, string>>;
    expect(dependencies?.['cortex-edge']).toBe(VERSION);
    const lock = JSON.parse(readFileSync(join(TEMPLATE, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, Record<string, unknown>>;
    };
    expect(lock.packages['']).toMatchObject({ dependencies, devDependencies });
    const root = JSON.parse(readFileSync(join(PACKAGE_ROOT, 'package.json'), 'utf8')) as typeof lock & {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    // What a project installs beside the package has the versions that the package is tested with.
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
      if (name !== 'cortex-edge')
        expect([name, version]).toEqual([name, { ...root.dependencies, ...root.devDependencies }[name]]);
    }
    const unpinned = Object.entries(lock.packages).filter(
      ([path, entry]) => path !== '' && path !== 'node_modules/cortex-edge' && entry['integrity'] === undefined,
    );
    expect(unpinned).toEqual([]);
    expect(Object.values(lock.packages).some((entry) => 'resolved' in entry)).toBe(false);
  });
});

describe('[K5] the deploy button', () => {
  test.each([
    'https://github.com/acme/shop-agent.git',
    'https://user:token@github.com/acme/shop-agent',
    'git@github.com:acme/shop-agent.git',
    'ssh://git@github.com/acme/shop-agent.git\n',
  ])('%s', (remote) => {
    expect(deployButton(remote)).toBe(
      '[![Deploy to Cloudflare](https://deploy.workers.cloudflare.com/button)](https://deploy.workers.cloudflare.com/?url=https://github.com/acme/shop-agent)',
    );
  });

  test.each(['', 'https://example.com/a/b', '/srv/git/a.git'])('refuses %j', (remote) => {
    expect(() => deployButton(remote)).toThrow('needs a public repository on github.com or gitlab.com');
  });
});
