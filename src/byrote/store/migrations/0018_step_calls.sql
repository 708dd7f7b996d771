-- Which call of its task a step is, what it was called with, and that its function raised.
alter table byrote_steps
  -- The branch of the task that called, and the position in it; null where only the sequence is known.
  add column place text collate "C",
  -- Of the arguments in canonical JSON; null where they are not JSON.
  add column args_hash bytea,
  drop constraint byrote_step_is_sound,
  add constraint byrote_step_is_sound check (
    case kind
      when 'step' then not open and result_json is not null and octet_length(result_hash) = 32
      -- The error is in result_json. Only a replay of its attempt reads it.
      when 'raised' then not open and result_json is not null and octet_length(result_hash) = 32
      when 'sleep' then wake_at is not null and result_json is null
      when 'event' then not (open and result_json is not null)
      else false
    end
    and octet_length(args_hash) = 32
  );
