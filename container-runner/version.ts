import manifest from './package.json' with { type: 'json' };

export const SERVICE = 'container-runner';
export const VERSION: string = manifest.version;
