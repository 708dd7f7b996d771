-- Let no statement of this transaction take longer than this.
select set_config('statement_timeout', %(limit)s::text, true) as statement_timeout;
