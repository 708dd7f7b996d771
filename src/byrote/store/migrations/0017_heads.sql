-- The duty that adds links to the chain notes the number of the last one, so that links taken out at the end are missed.
update byrote_duties
set cursor = (select max(link)::text from byrote_chain)
where duty = 'chain';
