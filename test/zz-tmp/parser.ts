export function createParser(_: unknown) {
  let all = '';
  return { feed(t: string) { all += t; return [] as any[]; }, end(): any[] {
    const ev: any[] = []; let ord = 0;
    const acts = (s: string, emb: boolean) => { for (const m of s.matchAll(/<action ([^>]*)>([\s\S]*?)<\/action>/g)) {
      const a: any = Object.fromEntries([...m[1]!.matchAll(/(\w+)="([^"]*)"/g)].map((x) => [x[1], x[2]]));
      const b = JSON.parse(m[2]!); const full = 'parameters' in b;
      const body = full ? b : { parameters: b };
      const dep = body.depends_on ?? (a.depends_on ? a.depends_on.split(',') : null);
      const refs = JSON.stringify(body.parameters).replaceAll('$$','').match(/\$\{?[A-Za-z_]\w*/g) ?? [];
      ev.push({ type: 'action_declared', action: { ordinal: ord++, id: a.id, type: a.type ?? 'tool', mode: a.mode, name: body.name ?? a.name ?? a.type, parameters: body.parameters, outputKey: body.output_key ?? a.output_key ?? null, dependsOn: dep, embeddedInThought: emb, references: refs } }); } };
    for (const m of all.matchAll(/<thought>([\s\S]*?)<\/thought>|<response([^>]*)>([\s\S]*?)<\/response>|(<action [\s\S]*?<\/action>)/g)) {
      if (m[4]) acts(m[4], false);
      else if (m[1] !== undefined) { ev.push({type:'thought', delta: m[1].replace(/<action[\s\S]*?<\/action>/g,'')}); acts(m[1], true); }
      else { const f = /final="(\w+)"/.exec(m[2]!)?.[1]; ev.push({type:'response_started', final: f==='true'?true:f==='false'?false:null});
        for (const p of m[3]!.split(/(\$\$|\$\{\w+(?:\.\w+)*\}|\$[A-Za-z_]\w*(?:\.\w+)*)/)) { if (p==='$$') ev.push({type:'response', delta:'$'}); else if (/^\$[{A-Za-z_]/.test(p)) { const [n, ...path] = p.replace(/[${}]/g,'').split('.'); ev.push({type:'response_reference', reference:{name:n, path, raw:p}}); } else ev.push({type:'response', delta:p}); }
        ev.push({type:'response_completed', unclosed:false}); }
    }
    const rest = all.replace(/<thought>[\s\S]*?<\/thought>|<response[^>]*>[\s\S]*?<\/response>|<action [\s\S]*?<\/action>/g,'');
    if (rest.trim() !== '') ev.push({type:'warning', code:'stub', message: rest});
    return ev; } };
}
