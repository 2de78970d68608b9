/** The catalogue: manifests, what uses what, and the validation of a pasted one (U4). */
import { href, route, setQuery } from '../app/router.ts';
import { List } from '../parts/bounded.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { Facts } from '../parts/facts.tsx';
import { TextField } from '../parts/fields.tsx';
import { ForeignText } from '../parts/foreign-text.tsx';
import { TextView } from '../parts/json-view.tsx';
import * as limits from '../parts/limits.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { Section } from '../parts/section.tsx';
import { Table } from '../parts/table.tsx';
import { When } from '../parts/when.tsx';
import { jsonText } from './json-text.ts';
import { ManifestCheck, showCheck } from './manifest-check.tsx';
import { isMeant, linksOf } from './manifest-links.ts';

export function ManifestsPage() {
  const load = useLoad(async (client, signal) => {
    const [manifests, graph] = await Promise.all([client.manifests({ signal }), client.manifestGraph({ signal })]);
    return { manifests, ...linksOf(graph) };
  }, []);
  const filter = route.value.query['filter'] ?? '';
  return (
    <Page
      title="Manifests"
      about="Agents, tools, relics and workflows are declared in manifests. Bundled ones cannot be changed."
      actions={
        <button type="button" onClick={showCheck}>
          Validate a manifest
        </button>
      }
    >
      <Section title="Catalogue">
        <TextField
          label="Filter"
          placeholder="a name, a kind or a word of the summary"
          value={filter}
          set={(value) => setQuery({ filter: value || undefined })}
        />
        <Loaded load={load}>
          {({ manifests, uses, usedBy }) => (
            <Table
              label="Table of manifests"
              rows={manifests.filter((manifest) => isMeant(manifest, filter))}
              columns={[
                [
                  'Name',
                  ({ kind, name }) => (
                    <>
                      <ManifestLink id={`${kind}/${name}`} /> <span class="quiet">{kind}</span>
                    </>
                  ),
                ],
                [
                  'Summary',
                  ({ summary, error }) => (
                    <>
                      <ForeignText text={summary} />
                      {error !== undefined && <p class="status-failed">Not usable: {error}</p>}
                    </>
                  ),
                ],
                [
                  'Version',
                  ({ version, revision }) => `${version} ${revision === null ? 'bundled' : `revision ${revision}`}`,
                ],
                ['Uses', ({ kind, name }) => <Links ids={uses.get(`${kind}/${name}`)} />],
                ['Used by', ({ kind, name }) => <Links ids={usedBy.get(`${kind}/${name}`)} />],
              ]}
            />
          )}
        </Loaded>
      </Section>
      <ManifestCheck />
    </Page>
  );
}

/** @param props.id `kind/name` */
function ManifestLink({ id }: { readonly id: string }) {
  const [kind = '', name = ''] = id.split('/');
  return (
    <a class="target" href={href(['manifests', kind, name])}>
      {name}
    </a>
  );
}

function Links({ ids = new Set() }: { readonly ids: ReadonlySet<string> | undefined }) {
  if (ids.size === 0) return <span class="quiet">—</span>;
  return (
    <List items={[...ids]} of="row links" max={limits.linksInList}>
      {(id) => (
        <li key={id}>
          <ManifestLink id={id} />
        </li>
      )}
    </List>
  );
}

export function ManifestPage({ kind, name }: { readonly kind: string; readonly name: string }) {
  const revision = Number(route.value.query['revision']) || undefined;
  const load = useLoad(
    async (client, signal) => {
      const [manifest, graph] = await Promise.all([
        client.manifest(kind, name, { revision, signal }),
        client.manifestGraph({ signal }),
      ]);
      return { manifest, ...linksOf(graph) };
    },
    [kind, name, revision],
  );
  return (
    <Page
      title={name}
      about={kind}
      actions={
        (kind === 'agent' || kind === 'workflow') && (
          <a class="button" href={href([`${kind}s`, name])}>
            Open the {kind}
          </a>
        )
      }
    >
      <Loaded load={load}>
        {({ manifest: { version, summary, error, source, tags, versions, updated_at: at }, uses, usedBy }) => (
          <>
            {error !== undefined && <p class="fault">It cannot be used: {error}</p>}
            <p>
              <ForeignText text={summary} />
            </p>
            <Facts
              facts={[
                ['Version', version],
                ['Tags', tags.join(', ') || '—'],
                ['Changed', at === null ? 'bundled' : <When at={at} />],
                ['Uses', <Links ids={uses.get(`${kind}/${name}`)} />],
                ['Used by', <Links ids={usedBy.get(`${kind}/${name}`)} />],
              ]}
            />
            <Section title="Source" actions={source !== null && <CopyButton text={source} label="Copy source" />}>
              <TextView text={source ?? 'Its source is not known.'} label="Source" />
            </Section>
            {versions.length > 0 && (
              <Section title="Versions">
                <Table
                  label="Table of versions"
                  rows={versions}
                  columns={[
                    [
                      'Revision',
                      (each) => (
                        <a
                          class="target"
                          href={href(['manifests', kind, name], { revision: jsonText(each['revision']) })}
                        >
                          {jsonText(each['revision'])}
                        </a>
                      ),
                    ],
                    ['Version', (each) => jsonText(each['version'])],
                    ['Created', (each) => <When at={each['created_at']} />],
                  ]}
                />
              </Section>
            )}
          </>
        )}
      </Loaded>
    </Page>
  );
}
