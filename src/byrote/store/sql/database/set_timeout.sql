-- Limit the time of each statement of this transaction.
select set_config('statement_timeout', %(limit)s::text, true) as statement_timeout;
