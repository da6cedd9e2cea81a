# SPDX-License-Identifier: Apache-2.0
"""pandas: tables, time series, csv, Parquet, Excel; and a pool of processes that use it."""
import importlib.util
import multiprocessing

import pandas as pd


def total(part):
    return int(part["visitors"].sum())


if __name__ == "__main__":
    days = pd.date_range("2026-01-01", periods=90, freq="D")
    table = pd.DataFrame({"day": days, "visitors": range(90), "beach": ["north", "south"] * 45})
    print(table.groupby("beach")["visitors"].agg(["count", "sum", "mean"]).to_string())
    print(table.set_index("day")["visitors"].resample("MS").sum().to_dict())
    table.to_csv("t.csv", index=False)
    print("csv", pd.read_csv("t.csv", parse_dates=["day"]).equals(table))
    joined = table.merge(pd.DataFrame({"beach": ["north"], "metres": [800]}), on="beach")
    print("merge", joined.shape, int(joined["metres"].sum()))
    with multiprocessing.Pool(2) as pool:
        print("pool", pool.map(total, [part for _, part in table.groupby("beach")]))
    if importlib.util.find_spec("pyarrow"):
        table.to_parquet("t.parquet")
        assert pd.read_parquet("t.parquet")["visitors"].sum() == 4005
    if importlib.util.find_spec("openpyxl"):
        table.to_excel("t.xlsx", index=False)
        assert pd.read_excel("t.xlsx")["visitors"].sum() == 4005
