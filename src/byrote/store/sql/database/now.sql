-- What the database's clock says.
select byrote_now();
