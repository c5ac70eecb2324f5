// Head of every question: its subject and its age.

import type { Approval } from "../api/resources";
import { Icon, type IconName } from "../ui/icons";
import { Age } from "../ui/parts";

const ICONS: { readonly [kind in Approval["kind"]]: IconName } = {
  permission: "approvals",
  question: "question",
  elicitation: "form",
  plan: "plan",
};

export function Head({ approval, title, detail }: { approval: Approval; title: string; detail: string }) {
  return (
    <header class="ask-head">
      <Icon name={ICONS[approval.kind]} />
      <div>
        <h3>{title}</h3>
        {detail !== "" && <p>{detail}</p>}
      </div>
      <Age at={approval.since} />
    </header>
  );
}
