-- Conversations of AI agents: all of it may be run again at any time, and on any earlier version.
CREATE TABLE IF NOT EXISTS assistant_messages (id TEXT NOT NULL, session_id TEXT NOT NULL DEFAULT '', parent_id TEXT, role TEXT NOT NULL,
  content TEXT NOT NULL, text_content TEXT NOT NULL DEFAULT '', created_at TIMESTAMPTZ DEFAULT NOW(),
  content_tsv TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', text_content)) STORED, PRIMARY KEY (session_id, id));
CREATE INDEX IF NOT EXISTS idx_assistant_msg_parent  ON assistant_messages (parent_id);
CREATE INDEX IF NOT EXISTS idx_assistant_msg_session ON assistant_messages (session_id);
CREATE INDEX IF NOT EXISTS idx_assistant_msg_fts     ON assistant_messages USING GIN (content_tsv);
CREATE TABLE IF NOT EXISTS assistant_compactions (id TEXT PRIMARY KEY, session_id TEXT NOT NULL DEFAULT '', summary TEXT NOT NULL,
  from_message_id TEXT NOT NULL, to_message_id TEXT NOT NULL, created_at TIMESTAMPTZ DEFAULT NOW());
CREATE TABLE IF NOT EXISTS cf_agents_context_blocks (label TEXT PRIMARY KEY, content TEXT NOT NULL, updated_at TIMESTAMPTZ DEFAULT NOW());
CREATE TABLE IF NOT EXISTS cf_agents_search_entries (label TEXT NOT NULL, key TEXT NOT NULL, content TEXT NOT NULL,
  content_tsv TSVECTOR GENERATED ALWAYS AS (to_tsvector('english', content)) STORED,
  created_at TIMESTAMPTZ DEFAULT NOW(), updated_at TIMESTAMPTZ DEFAULT NOW(), PRIMARY KEY (label, key));
CREATE INDEX IF NOT EXISTS idx_search_entries_fts ON cf_agents_search_entries USING GIN (content_tsv);

-- Rows of the first part get their order here, a parent before its children: the next part would number them as they happen to lie.
DO $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'assistant_messages'::regclass AND attname = 'seq') THEN
    ALTER TABLE assistant_messages ADD COLUMN seq BIGINT;
    WITH RECURSIVE tree AS (
      SELECT session_id, id, ctid AS place, COALESCE(created_at, 'epoch') AS latest, 0 AS depth FROM assistant_messages m
      WHERE NOT EXISTS (SELECT 1 FROM assistant_messages p WHERE p.session_id = m.session_id AND p.id = m.parent_id)
      UNION ALL
      SELECT m.session_id, m.id, m.ctid, GREATEST(t.latest, m.created_at), t.depth + 1
      FROM tree t JOIN assistant_messages m ON m.session_id = t.session_id AND m.parent_id = t.id),
    numbered AS (SELECT session_id, id, row_number() OVER (ORDER BY latest, depth, place) AS number FROM tree)
    UPDATE assistant_messages m SET seq = n.number FROM numbered n WHERE n.session_id = m.session_id AND n.id = m.id;
    UPDATE assistant_messages SET seq = 0 WHERE seq IS NULL; -- a circle by other hands has no order
    ALTER TABLE assistant_messages ALTER COLUMN seq SET NOT NULL, ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY;
    PERFORM setval(pg_get_serial_sequence('assistant_messages', 'seq'), (SELECT COALESCE(max(seq), 0) + 1 FROM assistant_messages), FALSE);
  END IF;
  IF NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'assistant_compactions'::regclass AND attname = 'seq') THEN
    ALTER TABLE assistant_compactions ADD COLUMN seq BIGINT;
    WITH numbered AS (SELECT id, row_number() OVER (ORDER BY created_at, ctid) AS number FROM assistant_compactions)
    UPDATE assistant_compactions c SET seq = n.number FROM numbered n WHERE n.id = c.id;
    ALTER TABLE assistant_compactions ALTER COLUMN seq SET NOT NULL, ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY;
    PERFORM setval(pg_get_serial_sequence('assistant_compactions', 'seq'), (SELECT COALESCE(max(seq), 0) + 1 FROM assistant_compactions), FALSE);
  END IF;
END $$;

-- second part: record order, explicit leaf, search by our own tokens
ALTER TABLE assistant_messages    ADD COLUMN IF NOT EXISTS seq BIGINT GENERATED ALWAYS AS IDENTITY;
ALTER TABLE assistant_compactions ADD COLUMN IF NOT EXISTS seq BIGINT GENERATED ALWAYS AS IDENTITY;
CREATE TABLE IF NOT EXISTS assistant_leaves (session_id TEXT PRIMARY KEY, message_id TEXT NOT NULL, updated_at TIMESTAMPTZ DEFAULT NOW());
ALTER TABLE assistant_messages       ADD COLUMN IF NOT EXISTS search_text TEXT NOT NULL DEFAULT '';
ALTER TABLE cf_agents_search_entries ADD COLUMN IF NOT EXISTS search_text TEXT NOT NULL DEFAULT '';
ALTER TABLE assistant_messages       ADD COLUMN IF NOT EXISTS search_tsv TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', search_text)) STORED;
ALTER TABLE cf_agents_search_entries ADD COLUMN IF NOT EXISTS search_tsv TSVECTOR GENERATED ALWAYS AS (to_tsvector('simple', search_text)) STORED;
CREATE INDEX IF NOT EXISTS idx_assistant_msg_search  ON assistant_messages USING GIN (search_tsv);
CREATE INDEX IF NOT EXISTS idx_search_entries_search ON cf_agents_search_entries USING GIN (search_tsv);

-- third part: the sessions of agents, and what keeps long ones quick
CREATE INDEX IF NOT EXISTS idx_assistant_msg_order    ON assistant_messages (session_id, seq);
CREATE INDEX IF NOT EXISTS idx_assistant_msg_children ON assistant_messages (session_id, parent_id, seq);
CREATE INDEX IF NOT EXISTS idx_assistant_cmp_session  ON assistant_compactions (session_id, seq);
-- A fork takes overlays along under their ids: `overlay_id` is what readers see, where it is not `id`.
ALTER TABLE assistant_compactions ADD COLUMN IF NOT EXISTS overlay_id TEXT;
-- An end was deleted: the overlay is told, and never applies again.
ALTER TABLE assistant_compactions ADD COLUMN IF NOT EXISTS retired BOOLEAN NOT NULL DEFAULT FALSE;
-- The session that a block or a prompt goes with when it is deleted.
ALTER TABLE cf_agents_context_blocks ADD COLUMN IF NOT EXISTS session_id TEXT;
CREATE INDEX IF NOT EXISTS idx_context_blocks_session ON cf_agents_context_blocks (session_id) WHERE session_id IS NOT NULL;
-- The registry. `session_id` is the name of a session in all other tables; '' is no user.
CREATE TABLE IF NOT EXISTS assistant_sessions (user_id TEXT NOT NULL DEFAULT '', agent_id TEXT NOT NULL, id TEXT NOT NULL,
  session_id TEXT NOT NULL UNIQUE, incarnation BIGINT GENERATED ALWAYS AS IDENTITY, parent_session_id TEXT,
  name TEXT, model TEXT, source TEXT, end_reason TEXT, facts TEXT NOT NULL DEFAULT '{}',
  input_tokens BIGINT NOT NULL DEFAULT 0, output_tokens BIGINT NOT NULL DEFAULT 0, estimated_cost DOUBLE PRECISION NOT NULL DEFAULT 0,
  message_count BIGINT NOT NULL DEFAULT 0, created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (user_id, agent_id, id));
CREATE INDEX IF NOT EXISTS idx_assistant_sessions_updated ON assistant_sessions (user_id, agent_id, updated_at);
CREATE TABLE IF NOT EXISTS assistant_labels (session_id TEXT NOT NULL, message_id TEXT NOT NULL, label TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT NOW(), PRIMARY KEY (session_id, message_id));
-- Milestones: how many messages and bytes the path to some messages has. Any of them may be missing.
CREATE TABLE IF NOT EXISTS assistant_milestones (session_id TEXT NOT NULL, message_id TEXT NOT NULL, seq BIGINT NOT NULL,
  messages BIGINT NOT NULL, bytes BIGINT NOT NULL, PRIMARY KEY (session_id, message_id));
-- How often something else was done to a session than an append.
CREATE TABLE IF NOT EXISTS assistant_upheavals (session_id TEXT PRIMARY KEY, upheavals BIGINT NOT NULL);
-- Who is compacting a session, and until when others believe it.
CREATE TABLE IF NOT EXISTS assistant_flights (session_id TEXT PRIMARY KEY, holder TEXT NOT NULL, until TIMESTAMPTZ NOT NULL);
-- The lines of sessions that were pushed or pulled, as files hold them. Those not yet `applied` count for nothing else here.
CREATE TABLE IF NOT EXISTS assistant_entries (session_id TEXT NOT NULL, "timestamp" TEXT NOT NULL, id TEXT NOT NULL, line TEXT NOT NULL,
  applied BOOLEAN NOT NULL DEFAULT FALSE, PRIMARY KEY (session_id, "timestamp", id));
